"""Noisy recovery in places, sensors, time and noise."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from cloakwork.accuracy import cramer_rao
from cloakwork.physics import HeatLine
from papers import Agreement, Result
from papers.experiments.noisy_recovery import AXES, RANGES, Bound, Late, Noisy, bound_of_papers, late_limit
from papers.statistics import Slope
from papers.trials import Place
from papers.upper_bound import papers_bound
from tests.papers import panel_kit
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("noisy-recovery")


@pytest.fixture(scope="module")
def finding(result: Result) -> Noisy:
    assert isinstance(result.finding, Noisy)
    return result.finding


def made_up(
    exponents: Mapping[str, float], *, floors: Mapping[str, float] | None = None, unfitted: float = 0.3
) -> Noisy:
    """Errors that are powers of what is varied."""
    floor = {"n": 0.0, "m": -0.5, "T": 1.5, "sigma": 1.0} | dict(floors or {})

    def power(exponent: float) -> Callable[[float], float]:
        return lambda x: x**exponent

    sweeps = tuple(
        panel_kit.made_sweep(axis, power(exponents[axis.name]), floor=power(floor[axis.name]), unfitted=unfitted)
        for axis in AXES
    )
    bound = Bound(Slope(1.0, 0.0), Slope(0.5, 0.0), 0.1)
    return Noisy(sweeps, sweeps, panel_kit.made_cells(), Late(Slope(1.5, 0.0), 0.01, 0.1, 0.25), bound)


AS_PRINTED = {"n": 0.0, "m": 0.0, "T": 0.5, "sigma": 1.0}


def verdicts(finding: Noisy) -> list[Agreement]:
    return [claim.verdict for claim in finding.claims()]


def test_settings_are_those_of_the_caption() -> None:
    usual = [axis.setting(axis.values[2]) for axis in AXES]
    assert [(one.n, one.m, one.T, one.sigma) for one in usual] == [
        (50, 50, 0.5, 0.1),
        (100, 50, 0.5, 0.1),
        (100, 50, 0.02, 0.2),
        (100, 50, 0.05, 0.1),
    ]
    assert all(one.at == (0.5,) and one.count == 1 for one in usual)


def test_limits_have_their_exponents(finding: Noisy) -> None:
    sweeps = {name: finding.of(Place.ANYWHERE, name, *ends) for name, ends in RANGES.items()}
    limits = {name: sweep.bound_slope().value for name, sweep in sweeps.items() if len(sweep.points) > 1}
    assert limits["n"] == pytest.approx(0.0, abs=0.01)
    assert limits["m"] == pytest.approx(-0.5, abs=0.01)
    assert limits["sigma"] == pytest.approx(1.0, abs=0.01)
    assert 0.7 < limits["T"] < 0.9


def test_late_the_limit_grows_like_the_power_three_halves_where_a_guess_is_better() -> None:
    late = late_limit()
    assert late.slope.near(1.5, allowed=0.02)
    assert late.first == cramer_rao(HeatLine(n=100, m=50, T=2.0), [0.5], 0.2).expected_emd
    assert late.guess == pytest.approx(0.25)
    assert late.guess < late.first < late.last


def test_the_bound_of_the_papers_is_followed_to_where_it_says_nothing() -> None:
    bound = bound_of_papers()
    line = HeatLine(n=100, m=50, T=0.05)
    assert papers_bound(line, [0.5], 0.99 * bound.reach).value < 0.25
    assert papers_bound(line, [0.5], 1.01 * bound.reach).value >= 0.25
    assert bound.noise.near(0.5, allowed=0.03)
    assert bound.time.value < 0.3


def test_if_all_were_as_printed_every_claim_would_agree() -> None:
    found = made_up(AS_PRINTED, unfitted=0.0)
    good = {Agreement.AGREES, Agreement.CONSISTENT}
    agreeing = [claim.text for claim in found.claims() if claim.verdict not in good]
    assert agreeing == ["error of noisy recovery in T for large T: T^2 (and never above 1)"]


@pytest.mark.parametrize(
    ("axis", "exponent", "verdict"),
    [
        ("n", 0.3, Agreement.WRONG),
        ("n", -0.3, Agreement.LOOSER),
        ("m", 0.3, Agreement.WRONG),
        ("m", -0.3, Agreement.LOOSER),
        ("T", 0.1, Agreement.WRONG),
        ("T", 0.9, Agreement.LOOSER),
        ("sigma", 0.5, Agreement.WRONG),
        ("sigma", 1.5, Agreement.LOOSER),
    ],
)
def test_rates_are_judged_by_the_slopes(axis: str, exponent: float, verdict: Agreement) -> None:
    number = [one.name for one in AXES].index(axis)
    assert verdicts(made_up(AS_PRINTED | {axis: exponent}))[number] is verdict


def test_an_error_that_goes_on_falling_does_not_level_off() -> None:
    assert verdicts(made_up(AS_PRINTED))[4] is Agreement.AGREES
    assert verdicts(made_up(AS_PRINTED | {"m": -0.25}))[4] is Agreement.WRONG


def test_what_is_judged_otherwise_with_the_source_anywhere_is_said() -> None:
    level, falling = (made_up(AS_PRINTED | {"m": exponent}) for exponent in (0.0, -0.5))
    mixed = replace(level, anywhere=falling.anywhere).claims()[1]
    assert mixed.verdict is Agreement.AGREES
    assert mixed.found.endswith(f"the verdict is: {Agreement.LOOSER}")
    assert "the verdict is" not in level.claims()[1].found


def test_proofs_and_late_times_are_judged_by_their_slopes() -> None:
    usual = made_up(AS_PRINTED)
    late = replace(usual.late, slope=Slope(2.5, 0.0))
    other = replace(usual, late=late, bound=Bound(Slope(0.5, 0.0), Slope(0.0, 0.0), 0.1))
    assert verdicts(other)[5:9] == [Agreement.WRONG] * 4
    assert verdicts(usual)[5:9] == [Agreement.AGREES, Agreement.LOOSER, Agreement.AGREES, Agreement.AGREES]


def test_a_limit_above_a_guess_decides_nothing() -> None:
    usual = made_up(AS_PRINTED)
    beyond = replace(usual, late=replace(usual.late, first=0.3))
    assert verdicts(beyond)[5:7] == [Agreement.UNDECIDED] * 2


def test_goals_are_judged_at_their_thresholds() -> None:
    usual = made_up(AS_PRINTED)
    assert [goal.met for goal in usual.goals()] == [True, True]
    assert [goal.met for goal in replace(usual, cells=panel_kit.made_cells(gain=1.9)).goals()] == [True, False]


def test_a_lower_bound_is_loose_where_the_floor_is_higher() -> None:
    assert verdicts(made_up(AS_PRINTED, floors={"T": 0.75}))[11] is Agreement.LOOSER
    assert verdicts(made_up(AS_PRINTED, floors={"T": 2.5}))[11] is Agreement.WRONG


def test_a_radius_that_nothing_fits_is_told() -> None:
    assert verdicts(made_up(AS_PRINTED))[-1] is Agreement.WRONG
    assert verdicts(made_up(AS_PRINTED, unfitted=0.01))[-1] is Agreement.AGREES
