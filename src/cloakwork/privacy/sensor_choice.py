"""Which sensors to keep when there may be only so many."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import spatial
from scipy.cluster import vq

from cloakwork._checks import FloatArray, IntArray
from cloakwork._checks import count as whole_number
from cloakwork.errors import CalibrationError, PhysicsError
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Matrix, Physics, Tolerance
from cloakwork.privacy.cloak import Cloak
from cloakwork.privacy.design import ENOUGH, ROUGHLY, Design, DesignReport, best_weights, sensors_that_see
from cloakwork.privacy.gaussian import Calibration
from cloakwork.privacy.interior import Optimum
from cloakwork.privacy.sensitivity import Scope
from cloakwork.privacy.variance import Moves

MOST_SLOPES = 250_000  # of places, axes and sensors; of more, some places stand for the others while choosing
EXCHANGES = 20  # of some sensors for others, at the most
_SEVERAL = (16, 8, 4, 2)  # newcomers that are tried together
_ONE_BY_ONE = 5  # newcomers and leavers that are tried in pairs


@dataclass(frozen=True, eq=False)
class SensorChoice:
    """The sensors to keep, and what they achieve at the same guarantee.

    Attributes
    ----------
    sensors
        Which ones, in order.
    cloak
        A cloak for these sensors alone, with noise of least error.
    even
        As many sensors spread evenly, for comparison.
    even_report, all_report
        What the evenly spread ones and all candidates achieve, each with noise of least error.
    """

    sensors: tuple[int, ...]
    cloak: Cloak
    even: tuple[int, ...]
    even_report: DesignReport
    all_report: DesignReport

    @property
    def report(self) -> DesignReport:
        """What the chosen sensors achieve."""
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
    resolution: float | None = None,
    readings_per_window: int = 1,
    tolerance: Tolerance | None = None,
    progress: Callable[[float], None] | None = None,
) -> SensorChoice:
    """The `count` sensors of a model that locate a lone source best at a given guarantee.

    Parameters
    ----------
    physics
        A model with all candidates as its sensors.
    count
        How many to keep.
    epsilon, delta, alpha, scope, calibration, resolution, readings_per_window, tolerance
        The claim, as for `Cloak`.
    progress
        Called with the part of the work that is done, from 0 to 1.

    Notes
    -----
    The best noise for all candidates shows which of them carry the information. Those that carry least are left out, an
    eighth of what is too many at a time, each time with the best noise for the rest; then sensors are exchanged while
    that helps. The choice is good, not proved best; its noise has a certificate as that of every design.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> choice = choose_sensors(HeatLine(n=40, m=20, T=0.01), 6, epsilon=2, delta=1e-5, alpha=0.02)
    >>> choice.report.variance < choice.even_report.variance
    True
    """
    wanted = whole_number("count", count, error=CalibrationError)
    if wanted > physics.sensors:
        raise CalibrationError(f"count={wanted}: the model has only {physics.sensors} sensors.", count=wanted)

    def cloaked(model: Physics) -> Cloak:
        return Cloak(
            model,
            epsilon=epsilon,
            delta=delta,
            alpha=alpha,
            scope=scope,
            calibration=calibration,
            resolution=resolution,
            readings_per_window=readings_per_window,
            tolerance=tolerance,
            design=Design.LEAST_ERROR,
        )

    whole = cloaked(physics)
    moves, rows = _conditions(whole)
    seeing = sensors_that_see(rows)
    found = _filled(_selected(moves, rows, wanted, progress or (lambda _: None)), wanted, physics.sensors)
    spread = evenly_spread(keep_sensors(physics, seeing.tolist()), min(wanted, len(seeing)))
    even = _filled(seeing[spread], wanted, physics.sensors)
    cloaks = {sensors: cloaked(keep_sensors(physics, sensors)) for sensors in (found, even)}
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
    raise PhysicsError(f"{type(physics).__name__}: make the model again with the sensors that you keep.")


def evenly_spread(physics: Physics, number: int) -> IntArray:
    """`number` of a model's sensors, far apart; by their order where it is not known where they are."""
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
    """`chosen` with as many others, that see nothing, as are still wanted."""
    spare = np.setdiff1d(np.arange(sensors), chosen)[: number - len(chosen)]
    return tuple(sorted([*chosen.tolist(), *spare.tolist()]))


def _far_apart(apart: FloatArray, number: int) -> IntArray:
    """Each the farthest from all before it."""
    chosen = [0]
    while len(chosen) < number:
        chosen.append(int(np.argmax(apart[chosen].min(axis=0))))
    return np.array(chosen, dtype=np.int64)


def _conditions(cloak: Cloak) -> tuple[Moves, FloatArray]:
    """What the mean is taken over, and the rows @ w <= 1 that the noise of one window must meet."""
    if cloak.scope is Scope.NETWORK:
        found = cloak.allowance.search().found()
        return found.moves.thinned(MOST_SLOPES), found.rows
    # against someone who sees one sensor, each has what it needs alone whatever the others do
    return Moves.of(cloak.physics).thinned(MOST_SLOPES), np.diag(cloak.sigmas**2 / cloak.readings_per_window)


def _selected(moves: Moves, rows: FloatArray, number: int, progress: Callable[[float], None]) -> IntArray:
    """The best `number` sensors that were found; fewer where no more see anything."""
    kept = _shed(moves, rows, sensors_that_see(rows), number)
    found = best_weights(moves, rows, kept)
    for turn in range(EXCHANGES):
        progress((turn + 1) / (EXCHANGES + 1))
        for tried in _exchanges(moves, rows, kept, found):
            goal = found.value * (1 - ENOUGH)
            optimum = best_weights(moves, rows, tried, like=found.weights, hopeless=goal)
            if optimum.value < goal:
                kept, found = tried, optimum
                break
        else:
            break
    return kept


def _shed(moves: Moves, rows: FloatArray, kept: IntArray, number: int) -> IntArray:
    """Leave out those that carry least, an eighth of what is too many at a time, until `number` are left."""
    weights = None
    while len(kept) > number:
        weights = best_weights(moves, rows, kept, like=weights, enough=ROUGHLY).weights
        carried = (-moves.gradient(weights) * weights)[kept]
        leave = max(1, (len(kept) - number) // 8)
        kept = np.sort(kept[np.argsort(carried, kind="stable")[leave:]])
    return kept


def _exchanges(moves: Moves, rows: FloatArray, kept: IntArray, found: Optimum) -> Iterator[IntArray]:
    """As many sensors, some of them others: several newcomers at once, then one by one."""
    others = np.setdiff1d(sensors_that_see(rows), kept)
    gradient = moves.gradient(found.weights)
    newcomers = others[np.argsort(gradient[others] / (found.prices @ rows[:, others]), kind="stable")]
    leavers = kept[np.argsort((-gradient * found.weights)[kept], kind="stable")]
    for several in _SEVERAL:
        if several < len(newcomers):
            yield _shed(moves, rows, np.sort(np.append(kept, newcomers[:several])), len(kept))
    for new in newcomers[:_ONE_BY_ONE]:
        for old in leavers[:_ONE_BY_ONE]:
            yield np.sort(np.append(kept[kept != old], new))
