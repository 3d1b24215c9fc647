"""Linear models of how sources become readings, and the space the sources live in.

`base` is what every model answers, and `moves` its most important answer: how fast readings change as a source moves.

- Models: `heat` (a line, a plane; `continuum` has their kernel), `floorplan` with its `rooms` (`local_field` where
  it is large), `graph` with its `edge_list`, and `matrix`. `diffusion` computes the rows of floors and graphs.
- Networks whose matrix is too large to form: `network_kernel` applies it, `network_slope` bounds its slopes, and
  `near_columns` follows heat that stays near.
- What may be wrong: `tolerance` (models, clocks), `later_readings` (a pulse read late) and `drift` (offsets).
"""

from cloakwork.physics.base import NumericalRange, Physics, follow, sources
from cloakwork.physics.continuum import heat_kernel
from cloakwork.physics.drift import Drift, Heat, Nuisance, whitener
from cloakwork.physics.edge_list import EDGE_COLUMNS, edge_columns
from cloakwork.physics.floorplan import FloorPlan, Pulse, Steady
from cloakwork.physics.graph import Graph, Laplacian
from cloakwork.physics.heat import HeatLine, HeatPlane, Placement
from cloakwork.physics.matrix import Matrix
from cloakwork.physics.moves import Moves, RowMoves, Slope, largest_of_each, pieces_of
from cloakwork.physics.rooms import Rooms
from cloakwork.physics.space import Metric, Space
from cloakwork.physics.tolerance import AT_ONCE, Family, Timing, Tolerance

__all__ = [
    "AT_ONCE",
    "EDGE_COLUMNS",
    "Drift",
    "Family",
    "FloorPlan",
    "Graph",
    "Heat",
    "HeatLine",
    "HeatPlane",
    "Laplacian",
    "Matrix",
    "Metric",
    "Moves",
    "Nuisance",
    "NumericalRange",
    "Physics",
    "Placement",
    "Pulse",
    "Rooms",
    "RowMoves",
    "Slope",
    "Space",
    "Steady",
    "Timing",
    "Tolerance",
    "edge_columns",
    "follow",
    "heat_kernel",
    "largest_of_each",
    "pieces_of",
    "sources",
    "whitener",
]
