"""Sweeps: points, limits, slopes, and what is said of claimed rates."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from cloakwork.accuracy import cramer_rao
from cloakwork.physics import HeatLine
from papers.drawing import round_numbers
from papers.le_cam import le_cam
from papers.result import Agreement
from papers.statistics import Mean, Slope, judge_lower, judge_upper
from papers.sweeps import (
    BAND,
    FLOOR,
    LIMIT,
    Point,
    Sweep,
    draw_bounds,
    draw_methods,
    floor_of,
    limit_of,
    run_sweep,
    try_point,
)
from papers.trials import Band, Method, Score, Setting, uniform_errors

FEW = {Method.PAPERS: 30, Method.PURSUIT: 30, Method.POSTERIOR: 6}


def made(exponent: float, *, xs: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0), methods: tuple[Method, ...] = ()) -> Sweep:
    points = []
    for x in xs:
        mean = Mean(0.1 * x**exponent, 0.001 * x**exponent)
        scores = tuple(Score(one, 100, 0.1, mean, mean, mean, 0.0, 0.0) for one in methods or Method)
        points.append(Point(x, scores, 0.05 * x**-0.5, 0.02 * x**0.75, 0.25, papers_limit=0.2 * x**-0.5))
    return Sweep("x", tuple(points))


@pytest.mark.parametrize("exponent", [-0.5, 0.0, 1.0])
def test_slopes_of_power_laws_are_their_exponents(exponent: float) -> None:
    sweep = made(exponent)
    assert all(sweep.slope(method).value == pytest.approx(exponent) for method in Method)
    assert sweep.bound_slope().value == pytest.approx(-0.5)
    assert sweep.bound_slope(FLOOR).value == pytest.approx(0.75)


def test_a_part_of_a_sweep_has_the_points_between_its_ends() -> None:
    assert [point.x for point in made(1.0).within(2.0, 4.0).points] == [2.0, 4.0]
    assert [point.x for point in made(1.0).within(high=2.0).points] == [1.0, 2.0]


def test_a_method_that_was_not_tried_is_left_out() -> None:
    sweep = Sweep("x", made(1.0, methods=(Method.PAPERS,)).points[:2] + made(1.0).points[2:])
    assert [point.x for point in sweep.of(Method.POSTERIOR)] == [4.0, 8.0]
    table = sweep.table("title")
    row = next(row for row in table.rows if row[0] == str(Method.POSTERIOR))
    assert row[1:3] == ("-", "-")
    assert row[3] != "-"
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_limits_are_those_of_the_measures() -> None:
    setting = Setting(n=12, m=8, T=0.1, at=(0.5,))
    line, none = HeatLine(n=12, m=8, T=0.1), np.zeros((0, 12))
    assert limit_of(setting, 0.1, none) == cramer_rao(line, [0.5], 0.1).expected_emd
    assert floor_of(setting, 0.1) is None
    anywhere = Setting(n=12, m=8, T=0.1)
    places = [cramer_rao(line, [i / 12], 0.1).expected_emd for i in range(1, 13)]
    assert limit_of(anywhere, 0.1, none) == pytest.approx(np.mean(places), rel=1e-9)
    assert floor_of(anywhere, 0.1) == le_cam(HeatLine(n=12, m=8, T=0.1, placement="anywhere"), 0.1)


def test_the_limit_of_several_is_the_mean_over_scenes_and_never_above_a_guess() -> None:
    setting, line = Setting(n=12, m=8, T=0.3, count=2), HeatLine(n=12, m=8, T=0.3)
    truth = np.zeros((3, 12))
    for row, places in zip(truth, ((1, 2), (2, 9), (0, 11)), strict=True):
        row[list(places)] = 1.0
    guesses = uniform_errors(truth)
    limits = [cramer_rao(line, [(i + 1) / 12, (j + 1) / 12], 0.1).expected_emd for i, j in ((1, 2), (2, 9), (0, 11))]
    assert limits[0] > guesses[0]
    assert limit_of(setting, 0.1, truth) == pytest.approx(np.minimum(limits, guesses).mean())
    assert limit_of(setting, 1e3, truth) == pytest.approx(guesses.mean())
    assert floor_of(setting, 0.1) is None


def test_the_papers_limit_is_there_only_where_their_noise_is_another() -> None:
    plain, private = (try_point(1.0, Setting(m=10, sigma=sigma), FEW, (1,)) for sigma in (0.1, None))
    assert plain.papers_limit is None
    assert private.papers_limit is not None
    assert private.limit is not None
    assert private.papers_limit > 4 * private.limit


def test_the_gain_is_the_papers_error_over_ours() -> None:
    point = try_point(1.0, Setting(m=20, sigma=0.2), FEW, (1,))
    assert point.gain is not None
    assert point.gain.value == point.of(Method.PAPERS).emd.value / point.of(Method.POSTERIOR).emd.value
    assert try_point(1.0, Setting(m=20, sigma=0.2), {Method.PAPERS: 6}, (1,)).gain is None


def test_no_method_is_below_the_floor() -> None:
    point = try_point(0.1, Setting(m=20, sigma=0.1), dict.fromkeys(Method, 60), (1,))
    assert point.floor is not None
    for one in point.scores:
        assert one.emd.value + 4 * one.emd.error > point.floor


def test_the_guess_is_the_error_of_the_uniform_map() -> None:
    point = try_point(1.0, Setting(n=10, m=5, sigma=0.1, at=(0.5,)), FEW, (1,))
    assert point.guess == pytest.approx(np.abs(np.arange(10) - 4).sum() / 100)


def test_a_sweep_depends_on_its_key_alone() -> None:
    settings = {sigma: Setting(n=20, m=10, sigma=sigma) for sigma in (0.1, 0.2)}
    first = run_sweep("sigma", settings, FEW, (1, 2))
    assert first == run_sweep("sigma", settings, FEW, (1, 2))
    assert first != run_sweep("sigma", settings, FEW, (1, 3))
    assert [point.of(Method.POSTERIOR).trials for point in first.points] == [6, 6]


def test_measures_name_what_they_are_of() -> None:
    found = made(1.0).measures("kind", (2.0,))
    assert [one.name for one in found] == [
        *(f"kind, x = 2, {method}" for method in Method),
        f"kind, x = 2, {LIMIT}",
    ]
    assert [one.error for one in found] == [0.002] * 3 + [0.0]


@pytest.mark.parametrize(
    ("slope", "claimed", "growing", "verdict"),
    [
        (Slope(0.03, 0.02), 0.0, True, Agreement.AGREES),
        (Slope(0.03, 0.11), 0.0, True, Agreement.UNDECIDED),
        (Slope(0.0, 0.2), 0.5, True, Agreement.UNDECIDED),
        (Slope(0.13, 0.02), 0.0, True, Agreement.UNDECIDED),
        (Slope(0.15, 0.02), 0.0, True, Agreement.WRONG),
        (Slope(-0.4, 0.02), 0.0, True, Agreement.LOOSER),
        (Slope(0.4, 0.02), 0.0, True, Agreement.WRONG),
        (Slope(0.5, 0.02), 1.0, False, Agreement.WRONG),
        (Slope(1.5, 0.02), 1.0, False, Agreement.LOOSER),
        (Slope(0.5, 0.15), 1.0, False, Agreement.WRONG),
        (Slope(0.5, 0.3), 1.0, False, Agreement.UNDECIDED),
        (Slope(0.5, float("nan")), 1.0, False, Agreement.UNDECIDED),
    ],
)
def test_an_upper_bound_is_judged_by_the_side_on_which_the_slope_is(
    slope: Slope, claimed: float, growing: bool, verdict: Agreement
) -> None:
    assert judge_upper(slope, claimed, growing=growing) is verdict


@pytest.mark.parametrize("value", [-0.3, -0.05, 0.0, 0.08, 0.2, 0.6])
def test_a_larger_error_never_helps_a_claim(value: float) -> None:
    verdicts = [judge_upper(Slope(value, error), 0.0, growing=True) for error in (0.0, 0.05, 0.1, 0.2, 0.5)]
    agreeing = [one is Agreement.AGREES for one in verdicts]
    assert agreeing == sorted(agreeing, reverse=True)


@pytest.mark.parametrize("value", [-0.4, 0.0, 0.13, 0.4])
def test_a_lower_bound_is_judged_the_other_way_round(value: float) -> None:
    swapped = {
        Agreement.LOOSER: Agreement.WRONG,
        Agreement.WRONG: Agreement.LOOSER,
        Agreement.AGREES: Agreement.CONSISTENT,
    }
    upper = judge_upper(Slope(value, 0.02), 0.0, growing=True)
    assert judge_lower(Slope(value, 0.02), 0.0, growing=True) is swapped.get(upper, upper)


def test_a_limit_above_a_guess_is_drawn_at_the_guess() -> None:
    axes = Figure().subplots()
    points = [replace(point, guess=0.04) for point in made(1.0).points]
    draw_bounds(axes, Sweep("x", tuple(points)))
    line = next(one for one in axes.get_lines() if one.get_label() == LIMIT)
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx([0.04, 0.05 * 2**-0.5, 0.025, 0.05 * 8**-0.5])


def test_the_band_is_drawn_where_every_point_has_one() -> None:
    band = Band(0.01, 0.5)
    points = [
        replace(point, scores=tuple(replace(score, band=band) for score in point.scores)) for point in made(1.0).points
    ]
    full, part = (Figure().subplots() for _ in range(2))
    draw_methods(full, Sweep("x", tuple(points)))
    draw_methods(part, Sweep("x", (*points[:-1], made(1.0).points[-1])))
    assert [len(axes.get_legend_handles_labels()[1]) for axes in (full, part)] == [4, 3]
    (drawn,) = [one for one in full.collections if one.get_label() == BAND]
    assert drawn.get_paths()[0].get_extents().ymin == pytest.approx(0.01)


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.3), (1e-4, 1.0), (3.0, 7000.0)])
def test_ticks_are_few_and_within(low: float, high: float) -> None:
    ticks = round_numbers(low, high)
    assert 1 <= len(ticks) <= 8
    assert low <= min(ticks) <= max(ticks) <= high
