"""Any matrix as a model."""

from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, not_negative, read_only
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics
from cloakwork.physics.space import Space


@dataclass(frozen=True, eq=False, init=False)
class Matrix(Physics):
    """A model defined by its matrix, which covers sources at the listed places.

    A smooth map that was fitted to radio signals gives no guarantee at decimetres. Radio fades: waves that arrive over
    several paths add up or cancel, so that a real move of 10 cm shifts the readings several times as far as the map
    says. `cloakwork.fitting.measured_shifts` compares a map with readings at near positions.

    Parameters
    ----------
    values
        M, shape (m, n): one row per sensor, one column per place. Taken as exact.
    space
        Places, neighbour pairs and metric: the shortest path over the pairs, or a Euclidean distance with all pairs,
        since neighbours alone do not bound a Euclidean move.
    lag
        Seconds in which a reading covers 63 % of the way to its new value; 0 for radio.

    >>> import numpy as np
    >>> model = Matrix(np.eye(3), Space.line(3))
    >>> round(model.moves().steepest().value, 6)
    4.242641
    """

    _values: FloatArray
    _space: Space
    lag = 0.0

    def __init__(self, values: FloatArray, space: Space, *, lag: float = 0.0) -> None:
        array = np.array(values, dtype=np.float64)
        if array.ndim != 2 or 0 in array.shape:
            raise PhysicsError(f"the matrix has shape {array.shape}: give sensors x places.", shape=array.shape)
        if array.shape[1] != len(space):
            raise PhysicsError(f"{array.shape[1]} columns but {len(space)} places: give as many.", shape=array.shape)
        if not np.isfinite(array).all():
            raise PhysicsError("the matrix has entries that are not finite numbers.", values=array)
        object.__setattr__(self, "_values", read_only(array))
        object.__setattr__(self, "_space", space)
        object.__setattr__(self, "lag", not_negative("lag", lag, error=PhysicsError))

    def __repr__(self) -> str:
        return f"Matrix({self.sensors} sensors, {self.places} places)"

    @property
    def space(self) -> Space:
        return self._space

    @property
    def matrix(self) -> FloatArray:
        return self._values

    @property
    def error(self) -> float:
        return 0.0
