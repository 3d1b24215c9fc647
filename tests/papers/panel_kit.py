"""Invented panels for the tests of noisy and of private recovery."""

from collections.abc import Callable, Mapping

from papers.calibration import Calibration
from papers.panels import Axis, Cell, Cells, Way
from papers.statistics import Mean
from papers.sweeps import Point, Sweep
from papers.trials import Method, Score, Setting


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
    return Sweep(axis.name, tuple(points))


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
