"""Noisy recovery in places, sensors, time and noise."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cloakwork.accuracy import cramer_rao, papers_bound
from cloakwork.physics import HeatLine
from papers import Agreement, Result
from papers.experiments.noisy_recovery import Axis, Bound, Late, Noisy, bound_of_papers, late_limit
from papers.slopes import Slope
from papers.trials import Method, Place
from tests.papers import panel_kit


@pytest.fixture(scope="module")
def result() -> Result:
    return panel_kit.run_small("noisy-recovery")


@pytest.fixture(scope="module")
def finding(result: Result) -> Noisy:
    assert isinstance(result.finding, Noisy)
    return result.finding


def made_up(
    exponents: Mapping[Axis, float], *, floors: Mapping[Axis, float] | None = None, unfitted: float = 0.3
) -> Noisy:
    """Errors that are powers of what is varied."""
    floor = {Axis.PLACES: 0.0, Axis.SENSORS: -0.5, Axis.TIME: 1.5, Axis.NOISE: 1.0} | dict(floors or {})

    def power(exponent: float) -> Callable[[float], float]:
        return lambda x: x**exponent

    sweeps = tuple(
        panel_kit.made_sweep(axis, power(exponents[axis]), floor=power(floor[axis]), unfitted=unfitted) for axis in Axis
    )
    bound = Bound(Slope(1.0, 0.0), Slope(0.5, 0.0), 0.1)
    return Noisy(sweeps, sweeps, panel_kit.made_cells(), Late(Slope(1.5, 0.0), 0.01, 0.1, 0.25), bound)


AS_PRINTED = {Axis.PLACES: 0.0, Axis.SENSORS: 0.0, Axis.TIME: 0.5, Axis.NOISE: 1.0}


def verdicts(finding: Noisy) -> list[Agreement]:
    return [claim.verdict for claim in finding.claims()]


def test_every_panel_has_every_method(finding: Noisy) -> None:
    panel_kit.has_every_method(finding, Axis)


def test_settings_are_those_of_the_caption() -> None:
    usual = [axis.setting(axis.values[2], Place.MIDDLE) for axis in Axis]
    assert [(one.n, one.m, one.T, one.sigma) for one in usual] == [
        (50, 50, 0.5, 0.1),
        (100, 50, 0.5, 0.1),
        (100, 50, 0.02, 0.2),
        (100, 50, 0.05, 0.1),
    ]
    assert all(one.at == (0.5,) and one.count == 1 for one in usual)


def test_the_same_seed_gives_the_same_numbers(result: Result) -> None:
    panel_kit.depends_on_the_seed_alone(result)


def test_json_round_trip(result: Result) -> None:
    panel_kit.comes_back_from_json(result)


def test_limits_have_their_exponents(finding: Noisy) -> None:
    limits = {axis: finding.steep(Place.ANYWHERE, axis).limit_slope().value for axis in Axis}
    assert limits[Axis.PLACES] == pytest.approx(0.0, abs=0.01)
    assert limits[Axis.SENSORS] == pytest.approx(-0.5, abs=0.01)
    assert limits[Axis.NOISE] == pytest.approx(1.0, abs=0.01)
    assert 0.7 < limits[Axis.TIME] < 0.9


def test_the_posterior_is_nearer_than_the_papers(finding: Noisy) -> None:
    point = finding.of(Place.ANYWHERE, Axis.SENSORS).at(1600)
    assert point.of(Method.POSTERIOR).emd.value < 0.5 * point.of(Method.PAPERS).emd.value


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
    agreeing = [claim.text for claim in found.claims() if claim.verdict is not Agreement.AGREES]
    assert agreeing == ["error of noisy recovery in T for large T: T^2 (and never above 1)"]


@pytest.mark.parametrize(
    ("axis", "exponent", "verdict"),
    [
        (Axis.PLACES, 0.3, Agreement.WRONG),
        (Axis.PLACES, -0.3, Agreement.LOOSER),
        (Axis.SENSORS, 0.3, Agreement.WRONG),
        (Axis.SENSORS, -0.3, Agreement.LOOSER),
        (Axis.TIME, 0.1, Agreement.WRONG),
        (Axis.TIME, 0.9, Agreement.LOOSER),
        (Axis.NOISE, 0.5, Agreement.WRONG),
        (Axis.NOISE, 1.5, Agreement.LOOSER),
    ],
)
def test_rates_are_judged_by_the_slopes(axis: Axis, exponent: float, verdict: Agreement) -> None:
    number = list(Axis).index(axis)
    assert verdicts(made_up(AS_PRINTED | {axis: exponent}))[number] is verdict


def test_an_error_that_goes_on_falling_does_not_level_off() -> None:
    assert verdicts(made_up(AS_PRINTED))[4] is Agreement.AGREES
    assert verdicts(made_up(AS_PRINTED | {Axis.SENSORS: -0.25}))[4] is Agreement.WRONG


def test_what_is_judged_otherwise_with_the_source_anywhere_is_said() -> None:
    level, falling = (made_up(AS_PRINTED | {Axis.SENSORS: exponent}) for exponent in (0.0, -0.5))
    mixed = replace(level, anywhere=falling.anywhere).claims()[1]
    assert mixed.verdict is Agreement.AGREES
    assert mixed.found.endswith("with the source anywhere the verdict would be: looser than it need be")
    assert "the verdict would be" not in level.claims()[1].found


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
    assert "no error on a line of length 1 shows it" in beyond.claims()[5].found


@pytest.mark.parametrize(("pursuit", "flatters"), [(0.5, True), (1.0, False)])
def test_that_the_middle_flatters_is_said_only_if_it_does(pursuit: float, flatters: bool) -> None:
    usual = made_up(AS_PRINTED)
    middle = tuple(
        panel_kit.made_sweep(axis, lambda _: 1.0, shares={Method.PURSUIT: pursuit, Method.POSTERIOR: 0.9})
        for axis in Axis
    )
    anywhere = tuple(panel_kit.made_sweep(axis, lambda _: 1.0, shares={Method.POSTERIOR: 0.9}) for axis in Axis)
    words = replace(usual, middle=middle, anywhere=anywhere).words()[1]
    assert words.startswith("The upper row flatters") is flatters


def test_goals_are_judged_at_their_thresholds() -> None:
    usual = made_up(AS_PRINTED)
    assert [goal.met for goal in usual.goals()] == [True, True]
    assert [goal.met for goal in replace(usual, cells=panel_kit.made_cells(gain=1.9)).goals()] == [True, False]


def test_a_lower_bound_is_loose_where_the_floor_is_higher() -> None:
    assert verdicts(made_up(AS_PRINTED, floors={Axis.TIME: 0.75}))[11] is Agreement.LOOSER
    assert verdicts(made_up(AS_PRINTED, floors={Axis.TIME: 2.5}))[11] is Agreement.WRONG


def test_a_radius_that_nothing_fits_is_told() -> None:
    assert verdicts(made_up(AS_PRINTED))[-1] is Agreement.WRONG
    assert verdicts(made_up(AS_PRINTED, unfitted=0.01))[-1] is Agreement.AGREES


def test_with_the_radius_of_the_papers_nothing_fits_in_a_third_of_frames(finding: Noisy) -> None:
    assert 0.25 < finding.unfitted.value < 0.5


def test_the_picture_tables_and_words_are_there(result: Result, tmp_path: Path) -> None:
    panel_kit.is_shown(result, tmp_path)


def test_measures_are_of_points_that_every_run_has(finding: Noisy) -> None:
    panel_kit.names_its_measures(finding)
