"""Any matrix as a model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from cloakwork._checks import FloatArray, frozen
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics
from cloakwork.physics.space import Metric, Space


@dataclass(frozen=True, eq=False, init=False)
class Matrix(Physics):
    """A model given by its numbers.

    Parameters
    ----------
    values
        M, one row a sensor and one column a place; taken as exact.
    space
        Places, neighbour pairs and metric. The metric must be the shortest path over the pairs, or the pairs
        must be all pairs: neighbours alone do not bound a Euclidean move.

    Examples
    --------
    >>> import numpy as np
    >>> model = Matrix(np.eye(3), Space.line(3))
    >>> float(model.joint_slope().value.__round__(6))
    4.242641
    """

    _values: FloatArray
    _space: Space

    def __init__(self, values: FloatArray, space: Space) -> None:
        array = np.array(values, dtype=np.float64)
        if array.ndim != 2 or 0 in array.shape:
            raise PhysicsError(f"the matrix has shape {array.shape}: give sensors x places, at least one of each.")
        if array.shape[1] != len(space):
            raise PhysicsError(f"the matrix has {array.shape[1]} columns but the space has {len(space)} places.")
        if not np.isfinite(array).all():
            raise PhysicsError("the matrix has entries that are not finite numbers.")
        object.__setattr__(self, "_values", frozen(array))
        object.__setattr__(self, "_space", space)

    @property
    def space(self) -> Space:
        return self._space

    @property
    def matrix(self) -> FloatArray:
        return self._values

    @property
    def error(self) -> float:
        return 0.0

    def with_spread(self, factor: float) -> Self:
        raise PhysicsError("a matrix has no diffusion to vary: give the tolerance as a gain.", factor=factor)

    def pair_columns(self) -> Iterator[tuple[slice, FloatArray]]:
        n = len(self.space)
        distinct = self.space.adjacency.nnz // 2
        if self.space.metric is Metric.PLANE and distinct < n * (n - 1) // 2:
            raise PhysicsError(
                "a matrix over a plane needs all pairs of places: with Euclidean distance, neighbours alone "
                "understate the sensitivity by up to sqrt 2. Give all pairs, or use Metric.PATH."
            )
        yield from super().pair_columns()
