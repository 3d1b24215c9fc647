"""What the tests of noisy and of private recovery share: small runs, made-up panels, and what holds for both."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from cloakwork.privacy import Calibration
from papers import Result, cells, find, panels, read_result
from papers.cells import Cell, Cells, Way
from papers.panels import Axis, Panels
from papers.sweeps import Point, Sweep
from papers.trials import Mean, Method, Place, Score, Setting


def run_small(name: str, seed: int = 1) -> Result:
    """A run that takes a few seconds."""
    few = {Method.PAPERS: 60, Method.PURSUIT: 60, Method.POSTERIOR: 8}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panels, "QUICK_TRIALS", few)
        patch.setattr(cells, "QUICK_FRAMES", {Way.PAPERS: 60, Way.PURSUIT: 60, Way.TOLD: 12, Way.FREE: 6})
        return find(name).run(quick=True, seed=seed)


def made_sweep(
    axis: Axis,
    error: Callable[[float], float],
    *,
    shares: Mapping[Method, float] | None = None,
    floor: Callable[[float], float] = lambda _: 0.01,
    unfitted: float = 0.0,
) -> Sweep:
    """A panel with given errors of the papers; of others so large a share of them; the limit is ours."""
    factors = dict.fromkeys(Method, 1.0) | dict(shares or {})
    points = []
    for x in axis.values:
        means = {method: Mean(error(x) * share, error(x) * share / 100) for method, share in factors.items()}
        scores = tuple(Score(one, 100, 0.1, mean, mean, mean, unfitted, 0.0) for one, mean in means.items())
        limit = error(x) * factors[Method.POSTERIOR]
        points.append(Point(x, scores, limit, floor(x), 1.0, papers_limit=2 * limit))
    return Sweep(str(axis), tuple(points))


def made_cells(*, gain: float = 10.0, noise: float = 5.0, told: float = 0.1, free: float = 0.2) -> Cells:
    """Cells with given factors; R, calibrated, has 0.2 with the exact noise."""
    errors = {Way.PAPERS: 0.3, Way.PURSUIT: 0.2, Way.TOLD: told, Way.FREE: free}
    exact = [Cell(Calibration.EXACT, way, 0.1, 100, Mean(errors[way], 0.001)) for way in Way]
    papers = [
        Cell(Calibration.PAPER, way, 0.5, 100, Mean(value, 0.001))
        for way, value in ((Way.PAPERS, gain * told), (Way.PURSUIT, gain * told), (Way.TOLD, noise * told))
    ]
    factors = [Mean(value, 0.01) for value in (gain, noise, free / told)]
    return Cells(Setting(), (*exact, *papers), *factors)


def has_every_method(finding: Panels, axes: Iterable[Axis]) -> None:
    """A small run measures every method in every panel, where a full one does too."""
    for place in Place:
        for axis in axes:
            sweep = finding.of(place, axis)
            assert [point.x for point in sweep.points] == list(axis.quick_values)
            assert set(axis.quick_values) <= set(axis.values)
            assert all([one.method for one in point.scores] == list(Method) for point in sweep.points)


def depends_on_the_seed_alone(result: Result) -> None:
    """The same seed gives the same numbers, and another gives others."""
    assert run_small(result.name) == result
    assert run_small(result.name, seed=2) != result


def comes_back_from_json(result: Result) -> None:
    """What is written is read again."""
    text = json.dumps(result.to_json(), allow_nan=False)
    assert read_result(text) == result
    assert len(text) < 100_000


def is_shown(result: Result, folder: Path) -> None:
    """The picture, a table for each panel, those of cells and slopes, and words without holes."""
    result.draw(folder / "panels.png")
    assert (folder / "panels.png").stat().st_size > 20_000
    assert len(result.tables()) == 10
    assert all(len(row) == len(table.columns) for table in result.tables() for row in table.rows)
    assert len(result.finding.words()) == 3
    assert not any(word in words for words in result.finding.words() for word in ("nan", "None", "  "))


def names_its_measures(finding: Panels) -> None:
    """Every number that runs are compared by has a name of its own, and one of them is the factor papers/ours."""
    names = [one.name for one in finding.measures()]
    assert len(names) == len(set(names)) > 60
    assert "papers/ours" in names
    assert all(one.value > 0 for one in finding.measures())
