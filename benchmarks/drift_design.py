"""Noise that is designed for readings that drift, against noise that is designed for readings that do not.

The flat of `cloakwork init` at its claim, one window. The offsets are those that the example's comments state, of which
nothing else is known, or what is left of them after a filter has learnt them from windows with known sources. The noise
that knows the drift is that of a site that states it, and so is for offsets that are learnt.
"""

import math
from dataclasses import replace

from rich.table import Table

from benchmarks.drift import ASSUMED, aware, flat
from cloakwork.accuracy import limits
from cloakwork.privacy.variance import LocationError


def run() -> tuple[Table, bool]:
    """The table, and whether the noise that knows the drift is the best of those for which it is learnt."""
    _, physics, cloak = flat()
    _, knowing = aware()
    window, allowance = cloak.readings_per_window, cloak.allowance
    noise = {
        "equal": allowance.equal().sigma,
        "does not know the drift": cloak.sigmas,
        "knows it as stated": replace(allowance, drift=ASSUMED).least_error().sigma,
        "knows it as learnt": knowing.sigmas,
    }
    weights = {name: window / sigma**2 for name, sigma in noise.items()}
    stated = LocationError.of(physics, drift=ASSUMED)
    rest = LocationError.of(physics, drift=knowing.allowance.drift)
    measures = {
        "learnt before: standard deviation": [math.sqrt(rest.mean(each)) for each in weights.values()],
        "as stated: standard deviation": [math.sqrt(stated.mean(each)) for each in weights.values()],
        "as stated: least mean distance": [
            limits(physics, sigma / math.sqrt(window), drift=ASSUMED).average_emd for sigma in noise.values()
        ],
        "none: standard deviation": [math.sqrt(LocationError.of(physics).mean(each)) for each in weights.values()],
    }
    table = Table("offsets", *noise, "less", title="A lone source from one window of the example flat, in metres")
    for name, errors in measures.items():
        table.add_row(name, *(f"{error:.3f}" for error in errors), f"{100 * (1 - errors[3] / errors[1]):.1f} %")
    table.caption = "standard deviation: root of the mean variance along one axis, Cramer-Rao"
    return table, all(errors[3] == min(errors) for name, errors in measures.items() if "learnt" in name)
