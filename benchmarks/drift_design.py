"""Noise that is designed for readings that drift, against noise that is designed for readings that do not.

The flat of `cloakwork init` at its claim, one window. The offsets are those that the example's comments state, of which
nothing else is known, or what is left of them after a filter has learnt them from windows with known sources.
"""

import math
from dataclasses import replace

import numpy as np
from rich.table import Table

from benchmarks.drift import ASSUMED, flat
from cloakwork._checks import FloatArray
from cloakwork.accuracy import limits
from cloakwork.privacy.variance import Moves

WINDOWS = 100


def learnt(weights: FloatArray, seconds: float) -> FloatArray:
    """The covariance of the offsets before a window, once those before have been seen, (m, m)."""
    nuisance = ASSUMED.on(flat()[1])
    columns, prior = nuisance.columns, np.diag(nuisance.deviations**2)
    kept, after = np.exp(-seconds / nuisance.over), prior
    before = prior
    for _ in range(WINDOWS):
        before = kept[:, None] * after * kept + prior * (1 - kept**2)
        gain = before @ columns.T @ np.linalg.inv(np.diag(1 / weights) + columns @ before @ columns.T)
        after = before - gain @ columns @ before
    return np.asarray(columns @ before @ columns.T)


def run() -> tuple[Table, bool]:
    """The table, and whether the noise that knows the drift is the best in each row."""
    site, physics, cloak = flat()
    window, allowance = cloak.readings_per_window, cloak.allowance
    noise = {
        "equal": allowance.equal().sigma,
        "does not know the drift": cloak.sigmas,
        "knows it": replace(allowance, drift=ASSUMED).least_error().sigma,
    }
    weights = {name: window / sigma**2 for name, sigma in noise.items()}
    stated = Moves.of(physics, drift=ASSUMED)
    rest = replace(stated, offsets=learnt(weights["does not know the drift"], site.spec.privacy.window))
    measures = {
        "learnt before: standard deviation": [math.sqrt(rest.mean(each)) for each in weights.values()],
        "as stated: standard deviation": [math.sqrt(stated.mean(each)) for each in weights.values()],
        "as stated: least mean distance": [
            limits(physics, sigma / math.sqrt(window), drift=ASSUMED).average_emd for sigma in noise.values()
        ],
        "none: standard deviation": [math.sqrt(Moves.of(physics).mean(each)) for each in weights.values()],
    }
    table = Table("offsets", *noise, "less", title="A lone source from one window of the example flat, in metres")
    for name, errors in measures.items():
        table.add_row(name, *(f"{error:.3f}" for error in errors), f"{100 * (1 - errors[2] / errors[1]):.1f} %")
    table.caption = "standard deviation: root of the mean variance along one axis, Cramer-Rao"
    return table, all(errors[2] == min(errors) for name, errors in measures.items() if "none" not in name)
