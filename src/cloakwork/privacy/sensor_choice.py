"""Choosing sensors: which ones to keep if only a given number may stay."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import spatial
from scipy.cluster import vq

from cloakwork._checks import FloatArray, IntArray
from cloakwork._checks import count as whole_number
from cloakwork.errors import CalibrationError, PhysicsError
from cloakwork.physics import AT_ONCE, Drift, FloorPlan, Graph, HeatLine, HeatPlane, Matrix, Physics, Timing, Tolerance
from cloakwork.privacy.cloak import Cloak
from cloakwork.privacy.design import ENOUGH, ROUGHLY, Design, DesignReport, best_weights, sensors_that_see
from cloakwork.privacy.gaussian import Calibration
from cloakwork.privacy.interior_point import Optimum
from cloakwork.privacy.observer import Scope
from cloakwork.privacy.variance import Moves

MOST_SLOPES = 250_000  # places times axes times sensors; beyond, the search samples the places
EXCHANGES = 20  # at most, of some sensors for others
_SEVERAL = (16, 8, 4, 2)  # newcomers to try together
_ONE_BY_ONE = 5  # newcomers and leavers to try in pairs


@dataclass(frozen=True, eq=False)
class SensorChoice:
    """The sensors to keep, and how well they do at the same guarantee.

    Attributes
    ----------
    sensors
        Their numbers, in order.
    cloak
        A cloak for these sensors alone, with noise of least error.
    even
        The same number of sensors, spread evenly, for comparison.
    even_report, all_report
        The reports of the evenly spread sensors and of all candidates, each with noise of least error.

    >>> from cloakwork.physics import HeatLine
    >>> choice = choose_sensors(HeatLine(n=20, m=10, T=0.01), 3, epsilon=2, delta=1e-5, alpha=0.05)
    >>> len(choice.sensors), choice.report.variance > choice.all_report.variance
    (3, True)
    """

    sensors: tuple[int, ...]
    cloak: Cloak
    even: tuple[int, ...]
    even_report: DesignReport
    all_report: DesignReport

    @property
    def report(self) -> DesignReport:
        """The report of the chosen sensors."""
        return self.cloak.design_report


def choose_sensors(
    physics: Physics,
    count: int,
    *,
    epsilon: float,
    delta: float,
    alpha: float,
    scope: Scope | str = Scope.NETWORK,
    calibration: Calibration | str = Calibration.EXACT,
    resolution: ArrayLike | None = None,
    own_noise: ArrayLike | None = None,
    count_own_noise: bool = False,
    readings_per_window: int = 1,
    tolerance: Tolerance | None = None,
    timing: Timing = AT_ONCE,
    drift: Drift | None = None,
    progress: Callable[[float], None] | None = None,
) -> SensorChoice:
    """Choose the `count` sensors of a model that locate a lone source best at a given guarantee.

    Parameters
    ----------
    physics
        A model with all candidates as its sensors.
    count
        Number of sensors to keep.
    epsilon, delta, alpha, scope, calibration, resolution, readings_per_window, tolerance, timing, drift
        The claim and the drift, as for `Cloak`, with `own_noise` and `count_own_noise`.
    progress
        Called with the fraction of the work that is done, from 0 to 1.

    Notes
    -----
    The best noise for all candidates shows which of them carry the information. Each round drops an eighth of the
    surplus, the sensors that carry least, and designs the noise of the rest anew; then sensors are exchanged while that
    helps. The choice is good but not proven best; its noise has a certificate, like every design.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> choice = choose_sensors(HeatLine(n=40, m=20, T=0.01), 6, epsilon=2, delta=1e-5, alpha=0.02)
    >>> choice.report.variance < choice.even_report.variance
    True
    """
    number = whole_number("count", count, error=CalibrationError)
    if number > physics.sensors:
        raise CalibrationError(
            f"count={number}: the model has only {physics.sensors} sensors.", count=number, sensors=physics.sensors
        )

    def cloaked(kept: Sequence[int] | None = None) -> Cloak:
        def of_kept(values: ArrayLike | None) -> ArrayLike | None:
            return values if values is None or kept is None or not np.ndim(values) else np.asarray(values)[list(kept)]

        return Cloak(
            physics if kept is None else keep_sensors(physics, kept),
            epsilon=epsilon,
            delta=delta,
            alpha=alpha,
            scope=scope,
            calibration=calibration,
            resolution=of_kept(resolution),
            own_noise=of_kept(own_noise),
            count_own_noise=count_own_noise,
            readings_per_window=readings_per_window,
            tolerance=tolerance,
            timing=timing,
            drift=drift,
            design=Design.LEAST_ERROR,
        )

    whole = cloaked()
    moves, rows = _conditions(whole)
    seeing = sensors_that_see(rows)
    selected = _filled(_selected(moves, rows, number, progress or (lambda _: None)), number, physics.sensors)
    spread = evenly_spread(keep_sensors(physics, seeing.tolist()), min(number, len(seeing)))
    even = _filled(seeing[spread], number, physics.sensors)
    cloaks = {sensors: cloaked(sensors) for sensors in (selected, even)}
    best = min(cloaks, key=lambda sensors: cloaks[sensors].design_report.variance)
    return SensorChoice(best, cloaks[best], even, cloaks[even].design_report, whole.design_report)


def keep_sensors(physics: Physics, sensors: Sequence[int]) -> Physics:
    """The same model with some of its sensors, by their numbers."""
    kept = np.asarray(sensors, dtype=np.int64)
    if isinstance(physics, FloorPlan):
        return replace(physics, sensors_at=[(float(x), float(y)) for x, y in physics.sensor_positions[kept]])
    if isinstance(physics, HeatLine):
        return replace(physics, m=[float(x) for x in physics.sensor_positions[kept]])
    if isinstance(physics, HeatPlane):
        return replace(physics, m=[(float(x), float(y)) for x, y in physics.sensor_positions[kept]])
    if isinstance(physics, Graph):
        labels = physics.space.labels
        nodes = [labels[k] if labels is not None else int(k) for k in physics.sensor_places[kept]]
        return Graph(physics.graph, physics.tau, nodes, physics.lengths, physics.gain)
    if isinstance(physics, Matrix):
        return Matrix(physics.matrix[kept], physics.space)
    raise PhysicsError(f"{type(physics).__name__}: make the model again with only the sensors that you keep.")


def evenly_spread(physics: Physics, number: int) -> IntArray:
    """Pick `number` of a model's sensors that are far apart, or by their order if their positions are unknown."""
    if isinstance(physics, Graph):
        at_nodes = physics.sensor_places
        apart = np.stack([physics.space.distances(int(node))[at_nodes] for node in at_nodes])
        return np.sort(_far_apart(apart, number))
    if not isinstance(physics, FloorPlan | HeatLine | HeatPlane):
        return np.unique(np.linspace(0, physics.sensors - 1, number).round().astype(np.int64))
    at = np.asarray(physics.sensor_positions, dtype=np.float64).reshape(physics.sensors, -1)
    far = _far_apart(spatial.distance.cdist(at, at), number)
    centres, _ = vq.kmeans2(at, at[far], minit="matrix", iter=20, missing="warn")
    kept: list[int] = []
    for centre in centres:
        order = np.argsort(((at - centre) ** 2).sum(axis=1), kind="stable")
        kept.append(next(int(k) for k in order if int(k) not in kept))
    return np.array(sorted(kept), dtype=np.int64)


def _filled(chosen: IntArray, number: int, sensors: int) -> tuple[int, ...]:
    """Fill `chosen` up to `number` with sensors that see nothing."""
    spare = np.setdiff1d(np.arange(sensors), chosen)[: number - len(chosen)]
    return tuple(sorted([*chosen.tolist(), *spare.tolist()]))


def _far_apart(apart: FloatArray, number: int) -> IntArray:
    """Pick sensors one by one, each the farthest from all before it."""
    chosen = [0]
    while len(chosen) < number:
        chosen.append(int(np.argmax(apart[chosen].min(axis=0))))
    return np.array(chosen, dtype=np.int64)


def _conditions(cloak: Cloak) -> tuple[Moves, FloatArray]:
    """The moves that the mean is taken over, and the rows @ w <= 1 that the noise of one window must meet."""
    if cloak.scope is Scope.NETWORK:
        result = cloak.allowance.search().run()
        return result.moves.thinned(MOST_SLOPES), result.rows
    # in scope "sensor" the noise of a sensor does not depend on the others
    return Moves.of(cloak.physics, drift=cloak.allowance.drift).thinned(MOST_SLOPES), np.diag(
        cloak.sigmas**2 / cloak.readings_per_window
    )


def _selected(moves: Moves, rows: FloatArray, number: int, progress: Callable[[float], None]) -> IntArray:
    """The best `number` sensors that the search finds; fewer if no more see anything."""
    kept = _shed(moves, rows, sensors_that_see(rows), number)
    best = best_weights(moves, rows, kept)
    for turn in range(EXCHANGES):
        progress((turn + 1) / (EXCHANGES + 1))
        for tried in _exchanges(moves, rows, kept, best):
            goal = best.value * (1 - ENOUGH)
            optimum = best_weights(moves, rows, tried, like=best.weights, hopeless=goal)
            if optimum.value < goal:
                kept, best = tried, optimum
                break
        else:
            break
    return kept


def _shed(moves: Moves, rows: FloatArray, kept: IntArray, number: int) -> IntArray:
    """Drop the sensors that carry least, an eighth of the surplus at a time, until `number` are left."""
    weights = None
    while len(kept) > number:
        weights = best_weights(moves, rows, kept, like=weights, enough=ROUGHLY).weights
        carried = (-moves.gradient(weights) * weights)[kept]
        leave = max(1, (len(kept) - number) // 8)
        kept = np.sort(kept[np.argsort(carried, kind="stable")[leave:]])
    return kept


def _exchanges(moves: Moves, rows: FloatArray, kept: IntArray, best: Optimum) -> Iterator[IntArray]:
    """Sets of the same size with some sensors exchanged: several newcomers at once, then one by one."""
    others = np.setdiff1d(sensors_that_see(rows), kept)
    gradient = moves.gradient(best.weights)
    newcomers = others[np.argsort(gradient[others] / (best.prices @ rows[:, others]), kind="stable")]
    leavers = kept[np.argsort((-gradient * best.weights)[kept], kind="stable")]
    for several in _SEVERAL:
        if several < len(newcomers):
            yield _shed(moves, rows, np.sort(np.append(kept, newcomers[:several])), len(kept))
    for new in newcomers[:_ONE_BY_ONE]:
        for old in leavers[:_ONE_BY_ONE]:
            yield np.sort(np.append(kept[kept != old], new))
