"""How far a recovered map is from the truth, and how near any map can come."""

from cloakwork.measure.cramer_rao import CramerRao, cramer_rao
from cloakwork.measure.emd import emd, l1, l2
from cloakwork.measure.le_cam import LeCam, le_cam
from cloakwork.measure.limits import Limits, limits
from cloakwork.measure.papers_bound import Assumption, PapersBound, papers_bound
from cloakwork.measure.papers_constants import Constants
from cloakwork.measure.resolution import Resolution, resolution
from cloakwork.measure.slopes import Method

__all__ = [
    "Assumption",
    "Constants",
    "CramerRao",
    "LeCam",
    "Limits",
    "Method",
    "PapersBound",
    "Resolution",
    "cramer_rao",
    "emd",
    "l1",
    "l2",
    "le_cam",
    "limits",
    "papers_bound",
    "resolution",
]
