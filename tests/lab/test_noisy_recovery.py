"""Noisy recovery in places, sensors, time and noise."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cloakwork.lab import Agreement, Result, find, read_result
from cloakwork.lab.experiments import noisy_recovery
from cloakwork.lab.experiments.noisy_recovery import Axis, Bound, Noisy, bound_of_papers, late_slope
from cloakwork.lab.slopes import Slope
from cloakwork.lab.sweeps import Point, Sweep
from cloakwork.lab.trials import Mean, Method, Place, Score
from cloakwork.measure import papers_bound
from cloakwork.physics import HeatLine


def run_small(seed: int = 1) -> Result:
    few = {Method.PAPERS: 60, Method.PURSUIT: 60, Method.POSTERIOR: 8}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noisy_recovery, "QUICK_TRIALS", few)
        return find("noisy-recovery").run(quick=True, seed=seed)


@pytest.fixture(scope="module")
def result() -> Result:
    return run_small()


@pytest.fixture(scope="module")
def finding(result: Result) -> Noisy:
    assert isinstance(result.finding, Noisy)
    return result.finding


def made_up(
    exponents: Mapping[Axis, float], *, floors: Mapping[Axis, float] | None = None, unfitted: float = 0.3
) -> Noisy:
    """Errors that are powers of what is varied."""
    floor = {Axis.PLACES: 0.0, Axis.SENSORS: -0.5, Axis.TIME: 1.5, Axis.NOISE: 1.0} | dict(floors or {})
    sweeps = []
    for axis in Axis:
        points = []
        for x in axis.values:
            error = x ** exponents[axis]
            mean = Mean(error, error / 100)
            scores = tuple(Score(method, 100, 0.1, mean, mean, mean, unfitted, 0.0) for method in Method)
            points.append(Point(x, scores, error, x ** floor[axis], 1.0))
        sweeps.append(Sweep(axis, tuple(points)))
    bound = Bound(Slope(1.0, 0.0), Slope(0.5, 0.0), 0.1)
    return Noisy(tuple(sweeps), tuple(sweeps), Slope(1.5, 0.0), bound)


AS_PRINTED = {Axis.PLACES: 0.0, Axis.SENSORS: 0.0, Axis.TIME: 0.5, Axis.NOISE: 1.0}


def verdicts(finding: Noisy) -> list[Agreement]:
    return [claim.verdict for claim in finding.claims()]


def test_every_panel_has_every_method(finding: Noisy) -> None:
    for place in Place:
        for axis in Axis:
            sweep = finding.of(place, axis)
            assert [point.x for point in sweep.points] == list(axis.quick_values)
            assert all([one.method for one in point.scores] == list(Method) for point in sweep.points)


def test_settings_are_those_of_the_caption() -> None:
    usual = [axis.setting(axis.values[2], Place.MIDDLE) for axis in Axis]
    assert [(one.n, one.m, one.T, one.sigma) for one in usual] == [
        (50, 50, 0.5, 0.1),
        (100, 50, 0.5, 0.1),
        (100, 50, 0.02, 0.2),
        (100, 50, 0.05, 0.1),
    ]
    assert all(one.at == (0.5,) and one.count == 1 for one in usual)


def test_a_small_run_measures_what_a_full_one_does() -> None:
    for axis in Axis:
        assert set(axis.quick_values) <= set(axis.values)


def test_the_same_seed_gives_the_same_numbers(result: Result) -> None:
    assert run_small() == result
    assert run_small(seed=2) != result


def test_json_round_trip(result: Result) -> None:
    text = json.dumps(result.to_json(), allow_nan=False)
    assert read_result(text) == result
    assert len(text) < 100_000


def test_limits_have_their_exponents(finding: Noisy) -> None:
    limits = {axis: finding.steep(Place.ANYWHERE, axis).limit_slope().value for axis in Axis}
    assert limits[Axis.PLACES] == pytest.approx(0.0, abs=0.01)
    assert limits[Axis.SENSORS] == pytest.approx(-0.5, abs=0.01)
    assert limits[Axis.NOISE] == pytest.approx(1.0, abs=0.01)
    assert 0.7 < limits[Axis.TIME] < 0.9


def test_the_posterior_is_nearer_than_the_papers(finding: Noisy) -> None:
    point = finding.of(Place.ANYWHERE, Axis.SENSORS).at(1600)
    assert point.of(Method.POSTERIOR).emd.value < 0.5 * point.of(Method.PAPERS).emd.value


def test_late_the_limit_grows_like_the_power_three_halves() -> None:
    assert late_slope().near(1.5, allowed=0.02)


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


def test_proofs_and_late_times_are_judged_by_their_slopes() -> None:
    usual = made_up(AS_PRINTED)
    other = replace(usual, late=Slope(2.5, 0.0), bound=Bound(Slope(0.5, 0.0), Slope(0.0, 0.0), 0.1))
    assert verdicts(other)[5:9] == [Agreement.WRONG] * 4
    assert verdicts(usual)[5:9] == [Agreement.AGREES, Agreement.LOOSER, Agreement.AGREES, Agreement.AGREES]


def test_a_lower_bound_is_loose_where_the_floor_is_higher() -> None:
    assert verdicts(made_up(AS_PRINTED, floors={Axis.TIME: 0.75}))[11] is Agreement.LOOSER
    assert verdicts(made_up(AS_PRINTED, floors={Axis.TIME: 2.5}))[11] is Agreement.WRONG


def test_a_radius_that_nothing_fits_is_told() -> None:
    assert verdicts(made_up(AS_PRINTED))[-1] is Agreement.WRONG
    assert verdicts(made_up(AS_PRINTED, unfitted=0.01))[-1] is Agreement.AGREES


def test_with_the_radius_of_the_papers_nothing_fits_in_a_third_of_frames(finding: Noisy) -> None:
    assert 0.25 < finding.unfitted.value < 0.5


def test_the_picture_tables_and_words_are_there(result: Result, tmp_path: Path) -> None:
    result.draw(tmp_path / "noisy.png")
    assert (tmp_path / "noisy.png").stat().st_size > 20_000
    assert len(result.tables()) == 9
    assert all(len(row) == len(table.columns) for table in result.tables() for row in table.rows)
    assert len(result.finding.words()) == 3
    assert not any("nan" in words for words in result.finding.words())


def test_measures_are_of_points_that_every_run_has(finding: Noisy) -> None:
    names = [one.name for one in finding.measures()]
    assert len(names) == len(set(names)) == 90
    assert all(one.value > 0 for one in finding.measures())
