"""Private recovery in places, sensors, time and epsilon."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cloakwork.privacy import Calibration
from papers import Agreement, Result
from papers.cells import Way
from papers.experiments.private_recovery import EARLY, LATE, Axis, Private, Stretch
from papers.trials import Method, Place
from tests.papers import panel_kit


@pytest.fixture(scope="module")
def result() -> Result:
    return panel_kit.run_small("private-recovery")


@pytest.fixture(scope="module")
def finding(result: Result) -> Private:
    assert isinstance(result.finding, Private)
    return result.finding


def made_up(exponents: Mapping[Stretch, float]) -> Private:
    """Errors of the papers that are powers of what is varied, with a kink in T; half as much for others."""

    def error_of(axis: Axis) -> Callable[[float], float]:
        if axis is Axis.TIME:
            early, late = (exponents.get(one, 0.0) for one in (Stretch.EARLY, Stretch.LATE))
            return lambda x: (x / 0.05) ** (early if x <= 0.05 else late)
        stretch = next(one for one in Stretch if one.axis is axis)
        return lambda x: x ** exponents.get(stretch, 0.0)

    shares = dict(zip(Method, (1, 0.5, 0.1), strict=True))
    sweeps = tuple(panel_kit.made_sweep(axis, error_of(axis), shares=shares) for axis in Axis)
    return Private(sweeps, sweeps, panel_kit.made_cells(), 1.0)


def verdicts(exponents: Mapping[Stretch, float]) -> list[Agreement]:
    return [claim.verdict for claim in made_up(exponents).claims()]


def test_every_panel_has_every_method(finding: Private) -> None:
    panel_kit.has_every_method(finding, Axis)


def test_settings_are_those_of_the_caption() -> None:
    usual = [axis.setting(axis.values[3], Place.MIDDLE) for axis in Axis]
    assert [(one.n, one.m, one.T, one.epsilon, one.delta, one.sigma) for one in usual] == [
        (100, 50, 0.05, 1.0, 0.1, None),
        (100, 50, 0.05, 1.0, 0.1, None),
        (100, 50, 0.014, 1.0, 0.1, None),
        (100, 50, 0.05, 1.0, 0.1, None),
    ]


def test_the_same_seed_gives_the_same_numbers(result: Result) -> None:
    panel_kit.depends_on_the_seed_alone(result)


def test_json_round_trip(result: Result) -> None:
    panel_kit.comes_back_from_json(result)


def test_the_papers_have_more_noise_at_the_same_privacy(finding: Private) -> None:
    point = finding.of(Place.ANYWHERE, Axis.EPSILON).at(1.0)
    papers, pursuit, ours = (point.of(method) for method in Method)
    assert papers.sigma > 4.5 * ours.sigma
    assert pursuit.sigma == ours.sigma
    assert papers.emd.value > 4 * ours.emd.value


def test_the_limit_with_the_papers_noise_is_as_many_times_larger_as_the_noise(finding: Private) -> None:
    for place in Place:
        for point in finding.of(place, Axis.EPSILON).points:
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


def test_what_not_being_told_costs_is_said() -> None:
    assert "no better than" in panel_kit.made_cells(free=0.25).words()
    assert "no better than" not in panel_kit.made_cells(free=0.15).words()


def test_the_limit_does_not_depend_on_sensors_and_falls_with_places(finding: Private) -> None:
    assert finding.over(Place.ANYWHERE, Stretch.SENSORS).limit_slope().value == pytest.approx(0.0, abs=0.01)
    assert finding.over(Place.ANYWHERE, Stretch.PLACES).limit_slope().value == pytest.approx(-1.0, abs=0.01)


def test_stretches_have_the_points_that_they_name(finding: Private) -> None:
    ends = {stretch: [point.x for point in finding.over(Place.MIDDLE, stretch).points] for stretch in Stretch}
    assert ends[Stretch.PLACES] == [100, 400]
    assert ends[Stretch.EARLY] == list(EARLY)
    assert ends[Stretch.LATE] == [0.2, 1.0]
    assert ends[Stretch.EPSILON] == [1.0, 5.0]


def test_if_all_were_as_printed_the_claims_would_agree() -> None:
    rates = {Stretch.PLACES: 0.0, Stretch.EARLY: -1.0, Stretch.LATE: 2.5}
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
        (Stretch.PLACES, 0.2, 0, Agreement.WRONG),
        (Stretch.PLACES, -1.0, 0, Agreement.LOOSER),
        (Stretch.SENSORS, 0.5, 1, Agreement.WRONG),
        (Stretch.SENSORS, 0.5, 2, Agreement.AGREES),
        (Stretch.SENSORS, -0.5, 1, Agreement.LOOSER),
        (Stretch.EARLY, -1.5, 3, Agreement.WRONG),
        (Stretch.EARLY, -0.4, 3, Agreement.LOOSER),
        (Stretch.LATE, 3.0, 4, Agreement.WRONG),
        (Stretch.LATE, 0.2, 4, Agreement.LOOSER),
        (Stretch.LATE, 2.0, 5, Agreement.AGREES),
    ],
)
def test_rates_are_judged_by_the_slopes(stretch: Stretch, exponent: float, number: int, verdict: Agreement) -> None:
    assert verdicts({stretch: exponent})[number] is verdict


@pytest.mark.parametrize(("early", "late", "rises"), [(-0.5, 0.5, True), (0.0, 0.5, False), (-0.5, 0.0, False)])
def test_a_rise_on_both_sides_is_seen(early: float, late: float, rises: bool) -> None:
    last = verdicts({Stretch.EARLY: early, Stretch.LATE: late})[-1]
    assert last is (Agreement.AGREES if rises else Agreement.WRONG)


def test_goals_are_judged_at_their_thresholds() -> None:
    usual = made_up({})
    assert [goal.met for goal in usual.goals()] == [True, True]
    assert usual.far == pytest.approx(1)
    assert [goal.met for goal in replace(usual, cells=panel_kit.made_cells(gain=5.9, told=0.2)).goals()] == [False] * 2


def test_that_small_times_end_at_a_guess_is_said_only_if_they_do() -> None:
    said = "nears that of a guess"
    assert said in made_up({}).words()[2]
    assert said not in made_up({Stretch.EARLY: 1.0, Stretch.LATE: LATE}).words()[2]


def test_the_bound_of_the_papers_says_nothing(finding: Private) -> None:
    assert finding.bound == 1.0


def test_the_picture_tables_and_words_are_there(result: Result, tmp_path: Path) -> None:
    panel_kit.is_shown(result, tmp_path)


def test_measures_are_of_points_that_every_run_has(finding: Private) -> None:
    panel_kit.names_its_measures(finding)
