"""How often a vicinity holds its source."""

import json
from pathlib import Path

import numpy as np
import pytest

from cloakwork.physics import Space
from cloakwork.recovery import Source
from papers import Result, find, read_result
from papers.experiments import vicinities
from papers.experiments.vicinities import (
    Calibrated,
    Coverage,
    Tally,
    coverage,
    draw_truth,
    held_in,
    pieces,
    try_some,
)
from papers.scenes import Strengths, flat, flat_cloak, line


def run_small() -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vicinities, "QUICK_FRAMES", dict.fromkeys(vicinities.QUICK_FRAMES, 6))
        return find("vicinities").run(quick=True)


@pytest.fixture(scope="module")
def result() -> Result:
    return run_small()


def source(place: int, *vicinity: int) -> Source:
    return Source(place, place, 1.0, 0.0, np.array(vicinity))


def held(of: float) -> Calibrated:
    tallies = tuple(Tally(count, 1000, round(1000 * of), 0.01, 1000, 5000) for count in (1, 2, 3))
    return Calibrated((Coverage("line", Strengths.UNIT, 100, 2000, tallies, 0.01, 100.0),))


def test_every_setting_is_measured(result: Result) -> None:
    assert isinstance(result.finding, Calibrated)
    names = [one.name for one in result.finding.settings]
    assert names == ["line, unit", "line, free", "rooms, unit"]  # a quick run leaves out the slowest
    for one in result.finding.settings:
        assert sum(tally.sources // tally.count for tally in one.tallies) == one.frames == 6
        assert 0 <= one.held <= 1
        assert 0 < one.mean_size <= one.places


def test_the_same_seed_gives_the_same_numbers(result: Result) -> None:
    assert run_small() == result


def test_json_round_trip(result: Result) -> None:
    assert read_result(json.dumps(result.to_json(), allow_nan=False)) == result


def test_the_picture_is_drawn(result: Result, tmp_path: Path) -> None:
    result.draw(tmp_path / "vicinities.png")
    assert (tmp_path / "vicinities.png").stat().st_size > 20_000


@pytest.mark.parametrize(("share", "met"), [(0.879, False), (0.881, True), (0.919, True), (0.921, False)])
def test_the_goal_has_two_sides(share: float, met: bool) -> None:
    assert [goal.met for goal in held(share).goals()] == [met]
    assert held(share).tables()[0].rows[0][1] == f"{100 * share:.1f} ± 1.0"


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.871, "line, unit 87.1 ± 1.0 %, that is 2.9 below"),
        (0.925, "line, unit 92.5 ± 1.0 %, that is 2.5 above"),
        (0.885, "line, unit 88.5 ± 1.0 %, as promised within the error"),
    ],
)
def test_it_says_how_far_from_the_promise_it_is(share: float, said: str) -> None:
    assert said in held(share).words()[0]


def test_vicinities_hold_about_nine_sources_in_ten() -> None:
    found = coverage([try_some("line", Strengths.UNIT, 150, (1, 0), lambda *_: None)])
    assert 0.83 < found.held < 0.96
    assert found.mean_size < 15


def test_pieces_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vicinities, "PIECE", 4)
    said: list[tuple[int, int]] = []
    cut = list(pieces("line", Strengths.UNIT, 10, (5,)))
    assert [(piece.name, piece.size) for piece in cut] == [("line-unit-0", 4), ("line-unit-1", 4), ("line-unit-2", 2)]
    tried = [piece.make(lambda *now: said.append(now)) for piece in cut]
    assert len({one.counts for one in tried}) == 3, "each has random numbers of its own"
    whole = coverage(tried)
    assert whole.frames == 10
    assert sum(tally.held for tally in whole.tallies) == sum(sum(one.held) for one in tried)
    assert sum(tally.sources for tally in whole.tallies) == sum(sum(one.counts) for one in tried)
    assert sum(tally.places for tally in whole.tallies) == sum(sum(one.places) for one in tried)
    assert said[-1] == (2, 2)


class TestHeld:
    space = Space.line(10)

    def test_a_source_in_its_own_vicinity_is_held(self) -> None:
        assert held_in(np.array([3, 8]), [source(3, 2, 3, 4), source(7, 7, 8)], self.space) == 2

    def test_a_source_in_the_vicinity_of_another_is_not(self) -> None:
        assert held_in(np.array([3, 8]), [source(3, 8), source(8, 3)], self.space) == 0

    def test_one_vicinity_holds_one_source(self) -> None:
        assert held_in(np.array([3, 4]), [source(3, 2, 3, 4)], self.space) == 1

    def test_vicinities_without_a_source_do_no_harm(self) -> None:
        assert held_in(np.array([3]), [source(9, 9), source(3, 3)], self.space) == 1

    def test_nothing_listed_holds_nothing(self) -> None:
        assert held_in(np.array([3]), [], self.space) == 0

    def test_places_without_a_path_between_them_can_be_matched(self) -> None:
        apart = Space.path([[0, 1], [2, 3]])
        assert held_in(np.array([0]), [source(3, 0, 3)], apart) == 1


def test_counts_and_places_are_uniform(rng: np.random.Generator) -> None:
    truth = draw_truth(line(), Strengths.FREE, 3000, rng)
    counts = np.bincount([len(places) for places in truth.places])
    assert counts[0] == 0
    assert (np.abs(counts[1:] - 1000) < 120).all()
    places = np.concatenate(truth.places)
    assert places.min() == 0
    assert places.max() == 99
    assert places.mean() == pytest.approx(49.5, abs=1.5)


def test_on_the_line_sources_are_between_places_and_in_rooms_on_cells(rng: np.random.Generator) -> None:
    on_line, in_rooms = (draw_truth(physics, Strengths.UNIT, 50, rng) for physics in (line(), flat()))
    grid = np.stack([line().matrix[:, places].sum(axis=1) for places in on_line.places])
    assert (np.abs(on_line.readings - grid).max(axis=1) > 1e-4).mean() > 0.9
    assert np.abs(on_line.readings - grid).max() < 3 * 0.005 * 3
    cells = np.stack([flat().matrix[:, places].sum(axis=1) for places in in_rooms.places])
    np.testing.assert_allclose(in_rooms.readings, cells)


def test_the_rooms_are_those_of_the_description() -> None:
    assert flat().places == 400
    assert flat().sensors == 100
    assert (flat_cloak().epsilon, flat_cloak().delta, flat_cloak().alpha) == (4.0, 1e-5, 0.3)
