"""The readings of a floor plan for many values of its reach and footprint, from one decomposition of its Laplacian."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError, SiteError
from cloakwork.physics import FloorPlan, Steady
from cloakwork.site import Site

MOST_PLACES = 6_000  # above this, the decomposition takes too long


@dataclass(frozen=True, eq=False)
class Responses:
    """Readings of a steady floor plan's sensors for a source of unit strength in each cell.

    Notes
    -----
    With L = V diag(l) V', the matrix of `FloorPlan` is V_sensors diag(exp(-l f^2 / 2) / (1 + l r^2)) V' / h^2, with
    reach r and footprint f in cells of side h.
    """

    plan: FloorPlan

    @classmethod
    def of_site(cls, site: Site) -> "Responses":
        """The responses of a site that can be calibrated: a floor plan with lasting sources."""
        plan = site.physics
        if not isinstance(plan, FloorPlan) or not isinstance(plan.regime, Steady):
            raise SiteError(
                f'{site.name}: only a floor plan with regime = "steady" can be calibrated.', kind=site.spec.physics.kind
            )
        if plan.places > MOST_PLACES:
            raise InputError(
                f"{plan.places:,} cells: at most {MOST_PLACES:,} can be calibrated. Use larger cells.",
                places=plan.places,
            )
        return cls(plan)

    @property
    def reach(self) -> float:
        """The stated reach, in metres."""
        return self.plan.regime.reach if isinstance(self.plan.regime, Steady) else 0.0

    @cached_property
    def _modes(self) -> tuple[FloatArray, FloatArray]:
        values, vectors = linalg.eigh(self.plan.laplacian.toarray(), overwrite_a=True, check_finite=False)
        return np.maximum(values, 0.0), vectors

    def matrix(self, reach: float, footprint: float, sources: FloatArray | None = None) -> FloatArray:
        """Readings of unit sources in all cells (m, n), or of `sources` (modes, S), which `in_modes` gives."""
        values, vectors = self._modes
        h = self.plan.rooms.cell
        factors = np.exp(-values * (footprint / h) ** 2 / 2) / (1 + values * (reach / h) ** 2) / h**2
        right = vectors.T if sources is None else sources
        return np.asarray((vectors[self.plan.sensor_places] * factors) @ right)

    def in_modes(self, sources: FloatArray) -> FloatArray:
        """Weights of cells (n, S) as weights of the modes."""
        return np.asarray(self._modes[1].T @ sources)
