"""Does a sensor really add the noise that it claims? A tenant asks, with nothing but its reports.

Run: python examples/audit_a_sensor.py
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

import cloakwork as cw

# The claim: a move of 0.5 m along this corridor is hidden at (1, 1e-3) from whoever sees one sensor.
corridor = cw.HeatLine(n=40, m=20, T=2.0, length=20.0)
EPSILON, DELTA = 1.0, 1e-3
cloak = cw.Cloak(corridor, epsilon=EPSILON, delta=DELTA, alpha=0.5, scope=cw.Scope.SENSOR)

# The bench: a warm body stands at one of two places, half a metre apart, in front of the sensor that sees it best.
places = cw.sources(corridor, [9.5]), cw.sources(corridor, [10.0])
sensor = int(np.argmax(np.abs(corridor.apply(places[0]) - corridor.apply(places[1]))))


def device(place: int, size: int, rng: np.random.Generator, *, noise: float) -> NDArray[np.float64]:
    """A black box that adds `noise` times the noise that was planned: a place in, reports out."""
    truth = np.tile(corridor.apply(places[place]), (size, 1))
    error = cloak.simulate(truth, rng=rng) - truth
    return np.asarray(np.rint((truth + noise * error)[:, sensor] / cloak.resolution))


print("a device that keeps its word")
honest = cw.audit(
    partial(device, noise=1.0), epsilon=EPSILON, delta=DELTA, reports=50_000, rng=np.random.default_rng(1)
)
print(honest, "\n")

print("a device that adds two thirds of the noise")
cheat = cw.audit(
    partial(device, noise=2 / 3), epsilon=EPSILON, delta=DELTA, reports=500_000, rng=np.random.default_rng(1)
)
print(cheat)
print(f"found after {cheat.reports_used:,} reports on each place")
