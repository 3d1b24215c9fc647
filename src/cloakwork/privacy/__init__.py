"""How much noise hides a move: sensitivity, calibration, composition, the noise itself, and the cloak."""

from cloakwork.privacy.choose import SensorChoice, choose_sensors, keep_sensors
from cloakwork.privacy.cloak import Cloak
from cloakwork.privacy.design import Design, DesignReport
from cloakwork.privacy.explain import Explanation
from cloakwork.privacy.gaussian import Calibration, Profile, largest_mu, paper_mu
from cloakwork.privacy.sensitivity import Scope, sensitivity
from cloakwork.privacy.table import Level, NoiseTable, noise_table
from cloakwork.privacy.variance import mean_variance, place_variances

__all__ = [
    "Calibration",
    "Cloak",
    "Design",
    "DesignReport",
    "Explanation",
    "Level",
    "NoiseTable",
    "Profile",
    "Scope",
    "SensorChoice",
    "choose_sensors",
    "keep_sensors",
    "largest_mu",
    "mean_variance",
    "noise_table",
    "paper_mu",
    "place_variances",
    "sensitivity",
]
