"""Linear models of how sources become readings, and the space the sources live in."""

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
