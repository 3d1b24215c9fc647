"""Fits the physics of a site to readings: to those of a walk before privacy starts, or to cloaked ones."""

from cloakwork.fitting.cloaked_fit import MOST_FRAMES, CloakedFit, fit_cloaked
from cloakwork.fitting.fitted import Fitted, rounded
from cloakwork.fitting.walk import Walk, read_walk
from cloakwork.fitting.walk_fit import WalkFit, fit_walk

__all__ = ["MOST_FRAMES", "CloakedFit", "Fitted", "Walk", "WalkFit", "fit_cloaked", "fit_walk", "read_walk", "rounded"]
