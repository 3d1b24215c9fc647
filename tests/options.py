"""Options of cloaks for tests that vary one of them: hardware and assumptions by the names of their fields."""

from collections.abc import Mapping
from typing import Any

import cloakwork as cw

HARDWARE = ("resolution", "noise_floor", "step")
ASSUMPTIONS = ("tolerance", "timing", "drift")


def grouped(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a `Cloak`, with those of the hardware and the assumptions put into their objects."""
    plain = {key: value for key, value in options.items() if key not in (*HARDWARE, *ASSUMPTIONS)}
    hardware = {key: options[key] for key in HARDWARE if key in options}
    assumptions = {key: options[key] for key in ASSUMPTIONS if key in options}
    plain |= {"hardware": cw.Hardware(**hardware)} if hardware else {}
    return plain | ({"assumptions": cw.Assumptions(**assumptions)} if assumptions else {})
