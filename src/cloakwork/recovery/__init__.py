"""From noisy readings back to the vicinity of the sources.

`recover` takes frames one by one. A `problem` is a physics with its noise, and an `estimator` solves it:

- `basis_pursuit`: the map of least weight that fits (`active_set`, `free_set`; `column_generation` on large networks,
  `vicinity` for its sources);
- `point_sources`: the posterior of a few points. `lattice` has their candidates; `posterior` weighs all placements
  (`enumeration`) or samples them (`sampling`, `jump_chain`, `chain_moves`) and summarises the draws (`summary`);
- `network_posterior` on networks, and `floors/` on large floors.

`tracking/` and `floors/` follow sources from frame to frame; each has a page at its door. `bit_presence` and `origin`
work on randomised bits.
"""

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
