"""Fits the physics of a site to the readings of a walk, and compares the shifts that were measured with a model's."""

from cloakwork.fitting.fitted import Fitted, rounded
from cloakwork.fitting.measured_shifts import MeasuredShifts, measured_shifts
from cloakwork.fitting.walk import Walk, read_walk
from cloakwork.fitting.walk_fit import WalkFit, fit_walk

__all__ = [
    "Fitted",
    "MeasuredShifts",
    "Walk",
    "WalkFit",
    "fit_walk",
    "measured_shifts",
    "read_walk",
    "rounded",
]
