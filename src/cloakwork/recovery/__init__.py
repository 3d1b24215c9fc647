"""From noisy readings back to the vicinity of the sources."""

from cloakwork.recovery.basis_pursuit import BasisPursuit
from cloakwork.recovery.bregman import Bregman
from cloakwork.recovery.estimator import Estimator, Radius, Solution, Status, noticed
from cloakwork.recovery.fit import Fit
from cloakwork.recovery.point_sources import PointSources
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.recover import Recovery, recover
from cloakwork.recovery.vicinity import Source, read_off

__all__ = [
    "BasisPursuit",
    "Bregman",
    "Estimator",
    "Fit",
    "PointSources",
    "Problem",
    "Radius",
    "Recovery",
    "Solution",
    "Source",
    "Status",
    "noticed",
    "read_off",
    "recover",
]
