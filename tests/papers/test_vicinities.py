"""How often a vicinity holds its source."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from cloakwork.physics import Space
from cloakwork.recovery import Source
from papers import Result, find
from papers.experiments import vicinities
from papers.experiments.vicinities import (
    Calibrated,
    Coverage,
    Tally,
    Tried,
    count_contained,
    coverage,
    draw_truth,
    flat_cloak,
    try_frames,
)
from papers.trials import Setting, Strengths
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("vicinities")


def source(place: int, *vicinity: int) -> Source:
    return Source(place, place, 1.0, 0.0, np.array(vicinity))


def held(of: float) -> Calibrated:
    tallies = tuple(Tally(count, 1000, round(1000 * of), 0.01, 1000, 5000) for count in (1, 2, 3))
    return Calibrated((Coverage("line", Strengths.UNIT, 100, 2000, tallies, 0.01, 100.0),))


def test_every_setting_is_measured(result: Result) -> None:
    assert isinstance(result.finding, Calibrated)
    settings = [(one.setting, one.strengths) for one in result.finding.settings]
    assert settings == list(vicinities.PROBE_FRAMES)
    for one in result.finding.settings:
        assert sum(tally.sources // tally.count for tally in one.tallies) == one.frames
        assert 0 <= one.held <= 1
        assert 0 < one.mean_size <= one.places


@pytest.mark.parametrize(("share", "met"), [(0.879, False), (0.881, True), (0.919, True), (0.921, False)])
def test_the_goal_has_two_sides(share: float, met: bool) -> None:
    assert [goal.met for goal in held(share).goals()] == [met]
    assert held(share).tables()[0].rows[0][1] == f"{100 * share:.1f} ± 1.0"


def test_vicinities_hold_about_nine_sources_in_ten() -> None:
    found = coverage([try_frames("line", Strengths.UNIT, 150, (1, 0))])
    assert 0.83 < found.held < 0.96
    assert found.mean_size < 15


class TestHeld:
    space = Space.line(10)

    def test_a_source_in_its_own_vicinity_is_held(self) -> None:
        assert count_contained(np.array([3, 8]), [source(3, 2, 3, 4), source(7, 7, 8)], self.space) == 2

    def test_a_source_in_the_vicinity_of_another_is_not(self) -> None:
        assert count_contained(np.array([3, 8]), [source(3, 8), source(8, 3)], self.space) == 0

    def test_one_vicinity_holds_one_source(self) -> None:
        assert count_contained(np.array([3, 4]), [source(3, 2, 3, 4)], self.space) == 1

    def test_vicinities_without_a_source_do_no_harm(self) -> None:
        assert count_contained(np.array([3]), [source(9, 9), source(3, 3)], self.space) == 1

    def test_nothing_listed_holds_nothing(self) -> None:
        assert count_contained(np.array([3]), [], self.space) == 0

    def test_places_without_a_path_between_them_can_be_matched(self) -> None:
        apart = Space.path([[0, 1], [2, 3]])
        assert count_contained(np.array([0]), [source(3, 0, 3)], apart) == 1


def test_counts_and_places_are_uniform(rng: np.random.Generator) -> None:
    drawn, _ = draw_truth(Setting().line, Strengths.FREE, 3000, rng)
    counts = np.bincount([len(places) for places in drawn])
    assert counts[0] == 0
    assert (np.abs(counts[1:] - 1000) < 120).all()
    places = np.concatenate(drawn)
    assert places.min() == 0
    assert places.max() == 99
    assert places.mean() == pytest.approx(49.5, abs=1.5)


def test_on_the_line_sources_are_between_places_and_in_rooms_on_cells(rng: np.random.Generator) -> None:
    flat = flat_cloak().physics
    places, readings = draw_truth(Setting().line, Strengths.UNIT, 50, rng)
    grid = np.stack([Setting().line.matrix[:, at].sum(axis=1) for at in places])
    assert (np.abs(readings - grid).max(axis=1) > 1e-4).mean() > 0.9
    assert np.abs(readings - grid).max() < 3 * 0.005 * 3
    places, readings = draw_truth(flat, Strengths.UNIT, 50, rng)
    np.testing.assert_allclose(readings, np.stack([flat.matrix[:, at].sum(axis=1) for at in places]))


def test_parts_of_a_run_have_their_own_random_numbers_and_add_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(vicinities, "PIECE", 4)
    monkeypatch.setattr(vicinities, "QUICK_FRAMES", {("line", Strengths.UNIT): 10})
    finding = find("vicinities").run(quick=True, seed=5, folder=tmp_path).finding
    parts = [TypeAdapter(Tried).validate_json(path.read_bytes()) for path in sorted(tmp_path.iterdir())]
    assert [len(one.counts) for one in parts] == [4, 4, 2]
    assert len({one.counts for one in parts}) == 3
    assert finding == Calibrated((coverage(parts),))


def test_the_rooms_are_those_of_the_description() -> None:
    assert flat_cloak().physics.places == 400
    assert flat_cloak().physics.sensors == 100
    assert (flat_cloak().epsilon, flat_cloak().delta, flat_cloak().alpha) == (4.0, 1e-5, 0.3)
