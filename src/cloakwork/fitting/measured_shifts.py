"""Real shifts of the readings between near positions, against those that the model allows."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import Metric, Space
from cloakwork.privacy import Cloak, Scope

CONFIDENCE = 0.95  # of what is called covered
MIN_PAIRS = 5  # nearest pairs that count for a move, however short
MAX_PAIRS = 5_000  # nearest pairs that are compared


@dataclass(frozen=True, eq=False)
class MeasuredShifts:
    """The shifts between all pairs of P near positions, the nearest pair first, and what the cloak's model allows.

    `distances` (P,) are in the unit of the space. `squares` (P, c) are the squared shifts: of all sensors together in
    one column, or of each sensor where each is hidden alone. They are weighted as the cloak's noise weighs the sensors,
    such that the cloak's sensitivity is what the model allows for its `alpha`; with equal noise they are in the unit of
    the readings, squared. `spread` (P, c) is the largest standard deviation of a shift in any direction, with so many
    degrees of `freedom`.

    `alpha` is the shortest move for which the model covers every measured shift, with confidence 0.95; infinity if the
    measurements show none.
    """

    cloak: Cloak
    ends: IntArray
    distances: FloatArray
    squares: FloatArray
    spread: FloatArray
    freedom: float

    @property
    def slope(self) -> float:
        """The shift that the model allows for each unit of distance."""
        return self.cloak.sensitivity / self.cloak.alpha

    @property
    def alpha(self) -> float:
        """The shortest move that the model covers, with every measured shift between positions as near as that."""
        longer = np.append(self.distances[1:], self.distances[-1])
        for pairs in range(min(MIN_PAIRS, len(self.distances)), len(self.distances) + 1):
            alpha = max(self._largest(pairs) / self.slope, float(self.distances[pairs - 1]))
            if alpha <= longer[pairs - 1]:
                return alpha
        return math.inf

    def sensitivity(self, alpha: float) -> float:
        """Return the sensitivity that covers all shifts measured within `alpha`, with confidence 0.95.

        It is at least that of the model. The five nearest pairs always count, so short moves are judged by longer ones.
        """
        return max(self.slope * alpha, self._largest(self._within(alpha)))

    def covers(self, alpha: float) -> bool:
        """Return whether the model allows all shifts measured within `alpha`."""
        return self.sensitivity(alpha) <= self.slope * alpha

    def _within(self, alpha: float) -> int:
        """Return the number of pairs within `alpha`, at least the nearest ones."""
        pairs = int(np.searchsorted(self.distances, alpha * (1 + 1e-9), side="right"))
        return min(max(pairs, MIN_PAIRS), len(self.distances))

    def _largest(self, pairs: int) -> float:
        """Return a bound on every real shift of the nearest pairs, for all of them together.

        With s the real shift and e the noise, |s + e|^2 >= |s|^2 - 2 |s| z sd for all but a few normal e.
        """
        squares, spread = self.squares[:pairs], self.spread[:pairs]
        far = float(special.stdtrit(self.freedom, 1 - (1 - CONFIDENCE) / squares.size)) * spread
        return float((far + np.sqrt(far**2 + squares)).max())


def measured_shifts(
    cloak: Cloak,
    positions: ArrayLike,
    readings: ArrayLike,
    *,
    variances: ArrayLike | None = None,
    freedom: float = math.inf,
) -> MeasuredShifts:
    """Compare true readings of one source at known positions with the shifts that a cloak's model allows.

    Parameters
    ----------
    cloak
        Its physics has places with coordinates, and one source of unit weight there is what was measured.
    positions
        S positions, shape (S, dimension), in the unit of the space.
    readings
        The mean reading of each sensor at each position, shape (S, m).
    variances
        The variance of each mean, shape (S, m) or (m,); 0 if left out, so that noise counts as a shift.
    freedom
        Degrees of freedom of the variances, where they are estimated.

    Notes
    -----
    A guarantee for `alpha` holds where no real move within `alpha` shifts the readings further than the model does. It
    can only be tested where positions are near each other: measure at pairs as near as `alpha`. Positions that nobody
    measured may shift further still. Distances around walls are bounded from below, by the path over the places.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakwork.physics import Matrix, Space
    >>> at = np.arange(1, 11) / 10
    >>> cloak = Cloak(Matrix(at[None], Space.line(10)), epsilon=2.0, delta=1e-5, alpha=0.2)
    >>> shifts = measured_shifts(cloak, at[:, None], (at + 0.1 * np.sin(20 * at))[:, None])
    >>> shifts.covers(0.25), round(shifts.sensitivity(0.25), 3)
    (False, 0.375)
    """
    at, values = np.asarray(positions, dtype=np.float64), np.asarray(readings, dtype=np.float64)
    space, sensors = cloak.physics.space, cloak.physics.sensors
    if at.ndim != 2 or at.shape[1] != space.places.shape[1] or not at.shape[1] or not np.isfinite(at).all():
        raise InputError(
            f"positions of shape {at.shape}: give one row a position, with {space.places.shape[1]} coordinates as the "
            "places of the model have; a model without coordinates cannot be compared.",
            shape=at.shape,
        )
    if values.shape != (len(at), sensors) or not np.isfinite(values).all():
        raise InputError(
            f"readings of shape {values.shape}: give a number for each of {len(at)} positions and {sensors} sensors.",
            shape=values.shape,
        )
    variance = np.broadcast_to(np.asarray(0.0 if variances is None else variances, dtype=np.float64), values.shape)
    if not (np.isfinite(variance).all() and (variance >= 0).all()):
        raise InputError("variances: give a finite number of at least 0 for each reading.")
    apart = _distances(space, at)
    one, other = np.triu_indices(len(at), 1)
    order = np.argsort(apart[one, other], kind="stable")[:MAX_PAIRS]
    one, other = one[order], other[order]
    if not len(one):
        raise InputError("measured shifts need readings at two positions or more.", positions=len(at))
    claimed = cloak.allowance.cost(cloak.sigmas, 0 * cloak.roundings)
    weights = (cloak.sensitivity / claimed / cloak.sigmas) ** 2
    squares = (values[one] - values[other]) ** 2 * weights
    spread = np.sqrt((variance[one] + variance[other]) * weights)
    if cloak.scope is not Scope.SENSOR:
        squares, spread = squares.sum(axis=1, keepdims=True), spread.max(axis=1, keepdims=True)
    return MeasuredShifts(cloak, np.stack([one, other], axis=1), apart[one, other], squares, spread, float(freedom))


def _distances(space: Space, at: FloatArray) -> FloatArray:
    """Return lower bounds on the distances between positions, (S, S), which differ from the straight line at walls."""
    straight = np.sqrt(((at[:, None] - at[None]) ** 2).sum(axis=2))
    if space.metric is not Metric.PATH:
        return np.asarray(straight)
    offsets = np.array([np.sqrt(((space.places - each) ** 2).sum(axis=1)).min() for each in at])
    nearest = [int(((space.places - each) ** 2).sum(axis=1).argmin()) for each in at]
    paths = np.array([space.distances(place)[nearest] for place in nearest])
    # the path over a square grid is at most sqrt(2) times as long as the straight line
    return np.asarray(np.maximum(straight, paths / math.sqrt(2) - offsets[:, None] - offsets))
