"""Private recovery in places, sensors, time and epsilon."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from papers import Agreement, Result
from papers.calibration import Calibration
from papers.experiments.private_recovery import AXES, EARLY, LATE, PLACES, SENSORS, Private
from papers.panels import Axis, Stretch, Way
from papers.trials import Method, Place
from tests.papers import panel_kit
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("private-recovery")


@pytest.fixture(scope="module")
def finding(result: Result) -> Private:
    assert isinstance(result.finding, Private)
    return result.finding


def made_up(exponents: Mapping[Stretch, float]) -> Private:
    """Errors of the papers that are powers of what is varied, with a kink in T; half as much for others."""

    def error_of(axis: Axis) -> Callable[[float], float]:
        if axis.name == "T":
            early, late = (exponents.get(one, 0.0) for one in (EARLY, LATE))
            return lambda x: (x / 0.05) ** (early if x <= 0.05 else late)
        exponent = next((value for one, value in exponents.items() if one.name == axis.name), 0.0)
        return lambda x: x**exponent

    shares = dict(zip(Method, (1, 0.5, 0.1), strict=True))
    sweeps = tuple(panel_kit.made_sweep(axis, error_of(axis), shares=shares) for axis in AXES)
    return Private(sweeps, sweeps, panel_kit.made_cells(), 1.0)


def verdicts(exponents: Mapping[Stretch, float]) -> list[Agreement]:
    return [claim.verdict for claim in made_up(exponents).claims()]


def test_settings_are_those_of_the_caption() -> None:
    usual = [axis.setting(axis.values[3]) for axis in AXES]
    assert [(one.n, one.m, one.T, one.epsilon, one.delta, one.sigma) for one in usual] == [
        (100, 50, 0.05, 1.0, 0.1, None),
        (100, 50, 0.05, 1.0, 0.1, None),
        (100, 50, 0.014, 1.0, 0.1, None),
        (100, 50, 0.05, 1.0, 0.1, None),
    ]


def test_the_papers_have_more_noise_at_the_same_privacy(finding: Private) -> None:
    point = finding.of(Place.ANYWHERE, "epsilon").at(1.0)
    papers, pursuit, ours = (point.of(method) for method in Method)
    assert papers.sigma > 4.5 * ours.sigma
    assert pursuit.sigma == ours.sigma
    assert papers.emd.value > 4 * ours.emd.value


def test_the_limit_with_the_papers_noise_is_as_many_times_larger_as_the_noise(finding: Private) -> None:
    for place in Place:
        for point in finding.of(place, "epsilon").points:
            assert point.limit is not None
            assert point.papers_limit is not None
            sigmas = [point.of(method).sigma for method in (Method.PAPERS, Method.POSTERIOR)]
            assert point.papers_limit / point.limit == pytest.approx(sigmas[0] / sigmas[1])


def test_the_factor_is_noise_times_recovery(finding: Private) -> None:
    found = finding.cells
    assert found.gain.value == pytest.approx(found.noise.value * found.recovery)
    told = [found.of(Way.TOLD, noise).emd.value for noise in (Calibration.PAPER, Calibration.EXACT)]
    assert found.noise.value == pytest.approx(told[0] / told[1])
    assert found.of(Way.PAPERS, Calibration.PAPER).sigma > 4.5 * found.of(Way.PAPERS).sigma


def test_the_limit_does_not_depend_on_sensors_and_falls_with_places(finding: Private) -> None:
    assert finding.of(Place.ANYWHERE, "m").bound_slope().value == pytest.approx(0.0, abs=0.01)
    assert finding.of(Place.ANYWHERE, "n", 100).bound_slope().value == pytest.approx(-1.0, abs=0.01)


def test_if_all_were_as_printed_the_claims_would_agree() -> None:
    rates = {PLACES: 0.0, EARLY: -1.0, LATE: 2.5}
    assert verdicts(rates) == [
        Agreement.AGREES,
        Agreement.AGREES,
        Agreement.LOOSER,
        Agreement.AGREES,
        Agreement.AGREES,
        Agreement.WRONG,
        Agreement.AGREES,
    ]


@pytest.mark.parametrize(
    ("stretch", "exponent", "number", "verdict"),
    [
        (PLACES, 0.2, 0, Agreement.WRONG),
        (PLACES, -1.0, 0, Agreement.LOOSER),
        (SENSORS, 0.5, 1, Agreement.WRONG),
        (SENSORS, 0.5, 2, Agreement.AGREES),
        (SENSORS, -0.5, 1, Agreement.LOOSER),
        (EARLY, -1.5, 3, Agreement.WRONG),
        (EARLY, -0.4, 3, Agreement.LOOSER),
        (LATE, 3.0, 4, Agreement.WRONG),
        (LATE, 0.2, 4, Agreement.LOOSER),
        (LATE, 2.0, 5, Agreement.AGREES),
    ],
)
def test_rates_are_judged_by_the_slopes(stretch: Stretch, exponent: float, number: int, verdict: Agreement) -> None:
    assert verdicts({stretch: exponent})[number] is verdict


@pytest.mark.parametrize(("early", "late", "rises"), [(-0.5, 0.5, True), (0.0, 0.5, False), (-0.5, 0.0, False)])
def test_a_rise_on_both_sides_is_seen(early: float, late: float, rises: bool) -> None:
    last = verdicts({EARLY: early, LATE: late})[-1]
    assert last is (Agreement.AGREES if rises else Agreement.WRONG)


def test_goals_are_judged_at_their_thresholds() -> None:
    usual = made_up({})
    assert [goal.met for goal in usual.goals()] == [True, True]
    assert usual.far == pytest.approx(1)
    assert [goal.met for goal in replace(usual, cells=panel_kit.made_cells(gain=5.9, told=0.2)).goals()] == [False] * 2


def test_the_bound_of_the_papers_says_nothing(finding: Private) -> None:
    assert finding.bound == 1.0
