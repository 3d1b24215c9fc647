"""How often a vicinity holds its source."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from cloakwork.physics import Space
from cloakwork.recovery import Source
from papers import find
from papers.experiments import vicinities
from papers.experiments.vicinities import (
    Calibrated,
    Coverage,
    Tally,
    Tried,
    count_contained,
    coverage,
    try_frames,
)
from papers.trials import Strengths


def source(place: int, *vicinity: int) -> Source:
    return Source(place, place, 1.0, 0.0, np.array(vicinity))


def held(of: float) -> Calibrated:
    tallies = tuple(Tally(count, 1000, round(1000 * of), 0.01, 1000, 5000) for count in (1, 2, 3))
    return Calibrated((Coverage("line", Strengths.UNIT, 100, 2000, tallies, 0.01, 100.0),))


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
