"""How fast readings are cloaked in bulk, against OpenDP's and NumPy's samplers."""

import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp
from rich.table import Table

from cloakwork.physics import HeatLine
from cloakwork.privacy import Cloak

GOAL = 1_000_000.0


def run() -> tuple[Table, bool]:
    """The table, and whether the goal is met."""
    line = HeatLine(n=100, m=50, T=0.05)
    frames = 40_000
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, readings_per_window=100 * frames, resolution=0.05)
    readings = np.random.default_rng(0).normal(size=(frames, 50))
    cloak.release(readings[:10])
    ours = _rate(lambda: cloak.release(readings), readings.size)

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    mechanism = dp.m.make_gaussian(*space, scale=cloak.sigma / cloak.resolution)
    integers = np.rint(readings.ravel()[:100_000] / cloak.resolution).astype(int).tolist()
    theirs = _rate(lambda: mechanism(integers), len(integers))

    rng = np.random.default_rng(0)
    plain = _rate(lambda: readings + rng.normal(scale=cloak.sigma, size=readings.shape), readings.size)
    table = Table(title="Noisy readings a second")
    for name in ("who", "rate", "note"):
        table.add_column(name, justify="right" if name == "rate" else "left")
    met = "goal 1,000,000: met" if ours >= GOAL else "goal 1,000,000: MISSED"
    table.add_row("Cloak.release", f"{ours:,.0f}", f"{met}; {ours / theirs:,.1f}x OpenDP")
    table.add_row("OpenDP, discrete Gaussian", f"{theirs:,.0f}", "exact, integers")
    table.add_row("NumPy, float noise", f"{plain:,.0f}", "not private: low bits leak")
    return table, ours >= GOAL


def _rate(work: Callable[[], object], draws: int) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return draws / best
