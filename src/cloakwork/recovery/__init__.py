"""From noisy readings back to the vicinity of the sources."""

from cloakwork.recovery.basis_pursuit import BasisPursuit, Bregman
from cloakwork.recovery.batch_posterior import BatchPosterior, batch_posterior
from cloakwork.recovery.bit_presence import presence
from cloakwork.recovery.estimator import Estimator, Progress, Solution, Status, detection_probability
from cloakwork.recovery.floors.floor_sources import MAX_SOURCES, samples_locally
from cloakwork.recovery.floors.floor_tracker import FloorTracker
from cloakwork.recovery.goodness_of_fit import DOUBTFUL, Fit, joint_p_value
from cloakwork.recovery.lattice import MAX_COARSE, MAX_PATH_PLACES
from cloakwork.recovery.origin import Origin, find_origin
from cloakwork.recovery.point_sources import PointSources
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.recover import Recovery, recover
from cloakwork.recovery.tracking.alignment import EXISTS
from cloakwork.recovery.tracking.estimate import FrameEstimate, Track
from cloakwork.recovery.tracking.fault_detection import Fault, FaultDetector, FaultKind
from cloakwork.recovery.tracking.history import TrackHistory, smooth, track
from cloakwork.recovery.tracking.motion import Motion
from cloakwork.recovery.tracking.observation import DrawnSources, Observer
from cloakwork.recovery.tracking.tracker import Tracker
from cloakwork.recovery.vicinity import Source, extract_sources

__all__ = [
    "DOUBTFUL",
    "EXISTS",
    "MAX_COARSE",
    "MAX_PATH_PLACES",
    "MAX_SOURCES",
    "BasisPursuit",
    "BatchPosterior",
    "Bregman",
    "DrawnSources",
    "Estimator",
    "Fault",
    "FaultDetector",
    "FaultKind",
    "Fit",
    "FloorTracker",
    "FrameEstimate",
    "Motion",
    "Observer",
    "Origin",
    "PointSources",
    "Problem",
    "Progress",
    "Recovery",
    "Solution",
    "Source",
    "Status",
    "Track",
    "TrackHistory",
    "Tracker",
    "batch_posterior",
    "detection_probability",
    "extract_sources",
    "find_origin",
    "joint_p_value",
    "presence",
    "recover",
    "samples_locally",
    "smooth",
    "track",
]
