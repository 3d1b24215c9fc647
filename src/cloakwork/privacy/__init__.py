"""How much noise hides a move: sensitivity, calibration, composition, the noise itself, and the cloak."""

from cloakwork.privacy.cloak import Cloak
from cloakwork.privacy.explain import Explanation
from cloakwork.privacy.gaussian import Calibration, Profile, largest_mu, paper_mu
from cloakwork.privacy.sensitivity import Scope, sensitivity
from cloakwork.privacy.table import NoiseTable, noise_table

__all__ = [
    "Calibration",
    "Cloak",
    "Explanation",
    "NoiseTable",
    "Profile",
    "Scope",
    "largest_mu",
    "noise_table",
    "paper_mu",
    "sensitivity",
]
