"""Private recovery in places, sensors, time and epsilon."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from cloakwork.lab import Agreement, Result, find, read_result
from cloakwork.lab.experiments import private_recovery
from cloakwork.lab.experiments.private_recovery import Axis, Private, Stretch
from cloakwork.lab.sweeps import Point, Sweep
from cloakwork.lab.trials import Mean, Method, Place, Score


def run_small(seed: int = 1) -> Result:
    few = {Method.PAPERS: 60, Method.PURSUIT: 60, Method.POSTERIOR: 8}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(private_recovery, "QUICK_TRIALS", few)
        return find("private-recovery").run(quick=True, seed=seed)


@pytest.fixture(scope="module")
def result() -> Result:
    return run_small()


@pytest.fixture(scope="module")
def finding(result: Result) -> Private:
    assert isinstance(result.finding, Private)
    return result.finding


def made_up(exponents: Mapping[Stretch, float]) -> Private:
    """Errors of the papers that are powers of what is varied, with a kink in T; half as much for others."""
    sweeps = []
    for axis in Axis:
        points = []
        for x in axis.values:
            stretches = {
                Axis.PLACES: Stretch.PLACES,
                Axis.SENSORS: Stretch.SENSORS,
                Axis.TIME: Stretch.EARLY if x <= 0.05 else Stretch.LATE,
                Axis.EPSILON: Stretch.EPSILON,
            }
            error = (x / 0.05 if axis is Axis.TIME else x) ** exponents.get(stretches[axis], 0.0)
            means = {
                method: Mean(error * share, error * share / 100)
                for method, share in zip(Method, (1, 0.5, 0.1), strict=True)
            }
            scores = tuple(Score(one, 100, 0.1, mean, mean, mean, 0.0, 0.0) for one, mean in means.items())
            points.append(Point(x, scores, 0.1 * error, 0.01, 1.0))
        sweeps.append(Sweep(axis, tuple(points)))
    return Private(tuple(sweeps), tuple(sweeps), 1.0)


def verdicts(exponents: Mapping[Stretch, float]) -> list[Agreement]:
    return [claim.verdict for claim in made_up(exponents).claims()]


def test_every_panel_has_every_method(finding: Private) -> None:
    for place in Place:
        for axis in Axis:
            sweep = finding.of(place, axis)
            assert [point.x for point in sweep.points] == list(axis.quick_values)
            assert set(axis.quick_values) <= set(axis.values)
            assert all([one.method for one in point.scores] == list(Method) for point in sweep.points)


def test_settings_are_those_of_the_caption() -> None:
    usual = [axis.setting(axis.values[3], Place.MIDDLE) for axis in Axis]
    assert [(one.n, one.m, one.T, one.epsilon, one.delta, one.sigma) for one in usual] == [
        (100, 50, 0.05, 1.0, 0.1, None),
        (100, 50, 0.05, 1.0, 0.1, None),
        (100, 50, 0.02, 1.0, 0.1, None),
        (100, 50, 0.05, 1.0, 0.1, None),
    ]


def test_the_same_seed_gives_the_same_numbers(result: Result) -> None:
    assert run_small() == result
    assert run_small(seed=2) != result


def test_json_round_trip(result: Result) -> None:
    text = json.dumps(result.to_json(), allow_nan=False)
    assert read_result(text) == result
    assert len(text) < 100_000


def test_the_papers_have_more_noise_at_the_same_privacy(finding: Private) -> None:
    point = finding.of(Place.ANYWHERE, Axis.EPSILON).at(1.0)
    papers, pursuit, ours = (point.of(method) for method in Method)
    assert papers.sigma > 4.5 * ours.sigma
    assert pursuit.sigma == ours.sigma
    assert papers.emd.value > 4 * ours.emd.value


def test_the_limit_does_not_depend_on_sensors_and_falls_with_places(finding: Private) -> None:
    assert finding.over(Place.ANYWHERE, Stretch.SENSORS).limit_slope().value == pytest.approx(0.0, abs=0.01)
    assert finding.over(Place.ANYWHERE, Stretch.PLACES).limit_slope().value == pytest.approx(-1.0, abs=0.01)


def test_stretches_have_the_points_that_they_name(finding: Private) -> None:
    ends = {stretch: [point.x for point in finding.over(Place.MIDDLE, stretch).points] for stretch in Stretch}
    assert ends[Stretch.PLACES] == [100, 200, 400]
    assert ends[Stretch.EARLY] == [0.005, 0.01, 0.02]
    assert ends[Stretch.LATE] == [0.2, 1.0]
    assert ends[Stretch.EPSILON] == [1.0, 5.0]


def test_if_all_were_as_printed_the_claims_would_agree() -> None:
    rates = {Stretch.PLACES: -0.5, Stretch.EARLY: -1.0, Stretch.LATE: 2.5}
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
    assert [goal.met for goal in made_up({}).goals()] == [True, True]
    assert made_up({}).ratio(Place.MIDDLE, Method.PAPERS, Method.POSTERIOR) == pytest.approx(10)
    assert made_up({}).ratio(Place.MIDDLE, Method.POSTERIOR) == pytest.approx(1)


def test_the_bound_of_the_papers_says_nothing(finding: Private) -> None:
    assert finding.bound == 1.0


def test_the_picture_tables_and_words_are_there(result: Result, tmp_path: Path) -> None:
    result.draw(tmp_path / "private.png")
    assert (tmp_path / "private.png").stat().st_size > 20_000
    assert len(result.tables()) == 9
    assert all(len(row) == len(table.columns) for table in result.tables() for row in table.rows)
    assert len(result.finding.words()) == 3
    assert not any("nan" in words for words in result.finding.words())


def test_measures_are_of_points_that_every_run_has(finding: Private) -> None:
    names = [one.name for one in finding.measures()]
    assert len(names) == len(set(names)) == 88
