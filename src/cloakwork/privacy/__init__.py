"""How much noise hides a move: sensitivity, calibration, composition, the noise, and the cloak.

From a claim to noise, in the order in which `cloak.py` joins the files:

1. `claim`: epsilon and delta say how far one frame may shift, in standard deviations (`gaussian` has the exact bound);
2. `hardware`, `noise_floor`: the steps of each sensor, and how much of them its own noise hides;
3. `calibration`: the noise that is enough; `design` and `tiled_design` choose it per sensor (`variance` is what they
   make small, `interior_point` how), and `long_stay` adds offsets that change slowly;
4. `distribution`, `noise_table`, `laplace`, `sampler`: the tables of a device, and draws from them in bulk;
5. `guarantee`, `exposure`: what all this means, in words and figures.

`flip`, `private_choice` and `budget` are mechanisms beside the cloak, with `losses` for their sums.
"""

from cloakwork.privacy.budget import Budget
from cloakwork.privacy.bulk_keystream import Keystream, first_offset
from cloakwork.privacy.calibration import Allowance, reading_mu, sensitivity
from cloakwork.privacy.claim import Assumptions, Claim, Scope, allowed_mu
from cloakwork.privacy.cloak import Cloak
from cloakwork.privacy.design import Design, DesignReport
from cloakwork.privacy.distribution import NoiseLaw
from cloakwork.privacy.exposure import Exposure, exposures, flip_exposures
from cloakwork.privacy.flip import Flip, Shares, flip_table, share_limits
from cloakwork.privacy.gaussian import Profile, check_claim, largest_mu
from cloakwork.privacy.guarantee import LARGE_COST, Explanation, Guarantee
from cloakwork.privacy.hardware import Hardware
from cloakwork.privacy.laplace import LaplaceProfile, laplace_table
from cloakwork.privacy.ledger import Immutable, Ledger
from cloakwork.privacy.long_stay import Information, OffsetWalk, SlowNoise, Stay
from cloakwork.privacy.noise_table import (
    CUT_BITS,
    SERVER_TABLES,
    Level,
    NoiseTable,
    cuts_error,
    noise_table,
    table_ratio,
)
from cloakwork.privacy.private_choice import Chooser, choose
from cloakwork.privacy.sampler import WordSource, noise_from_words, noise_of_frames, private_words, simulated_words
from cloakwork.privacy.variance import place_variances

__all__ = [
    "CUT_BITS",
    "LARGE_COST",
    "SERVER_TABLES",
    "Allowance",
    "Assumptions",
    "Budget",
    "Chooser",
    "Claim",
    "Cloak",
    "Design",
    "DesignReport",
    "Explanation",
    "Exposure",
    "Flip",
    "Guarantee",
    "Hardware",
    "Immutable",
    "Information",
    "Keystream",
    "LaplaceProfile",
    "Ledger",
    "Level",
    "NoiseLaw",
    "NoiseTable",
    "OffsetWalk",
    "Profile",
    "Scope",
    "Shares",
    "SlowNoise",
    "Stay",
    "WordSource",
    "allowed_mu",
    "check_claim",
    "choose",
    "cuts_error",
    "exposures",
    "first_offset",
    "flip_exposures",
    "flip_table",
    "laplace_table",
    "largest_mu",
    "noise_from_words",
    "noise_of_frames",
    "noise_table",
    "place_variances",
    "private_words",
    "reading_mu",
    "sensitivity",
    "share_limits",
    "simulated_words",
    "table_ratio",
]
