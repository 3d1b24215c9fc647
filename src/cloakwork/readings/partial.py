"""A cloak as seen by someone to whom only some sensors reported."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.physics import Matrix, Physics
from cloakwork.privacy import Cloak


@dataclass(frozen=True, eq=False)
class PartialCloak:
    """What recovery needs of a cloak, for the sensors that reported."""

    physics: Physics
    sigmas: FloatArray
    steps: FloatArray


def reporting(cloak: Cloak, present: NDArray[np.bool_]) -> PartialCloak:
    """The part of a cloak that the present sensors make up; the whole when all are."""
    if present.all():
        return PartialCloak(cloak.physics, cloak.sigmas, cloak.steps)
    rows = Matrix(cloak.physics.matrix[present], cloak.physics.space)
    return PartialCloak(rows, cloak.sigmas[present], cloak.steps[present])
