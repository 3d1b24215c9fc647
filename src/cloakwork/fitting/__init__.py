"""Fits the physics of a site to the readings of a walk, before privacy starts."""

from cloakwork.fitting.fitted import Fitted, rounded
from cloakwork.fitting.walk import Walk, read_walk
from cloakwork.fitting.walk_fit import WalkFit, fit_walk

__all__ = ["Fitted", "Walk", "WalkFit", "fit_walk", "read_walk", "rounded"]
