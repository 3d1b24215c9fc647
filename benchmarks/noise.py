"""Speed of cloaking in bulk, against the samplers of OpenDP and NumPy."""

import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp
from rich.table import Table

from cloakwork.physics import HeatLine
from cloakwork.privacy import Cloak, Hardware, noise_of_frames, noise_table, private_words

GOAL = 1_000_000.0
SENSORS, FRAMES = 50, 40_000
RATIOS = (129.0, 3017.0, 2.0**24)


def run() -> tuple[Table, bool]:
    """The table, and whether the goal is met."""
    line = HeatLine(n=100, m=SENSORS, T=0.05)
    cloak = Cloak(
        line, epsilon=1, delta=1e-6, alpha=0.01, readings_per_window=100 * FRAMES, hardware=Hardware(step=0.05)
    )
    readings = np.random.default_rng(0).normal(size=(FRAMES, SENSORS))
    cloak.release(readings[:10])
    ours = _rate(lambda: cloak.release(readings), readings.size)
    rng = np.random.default_rng(0)
    plain = _rate(lambda: readings + rng.normal(scale=cloak.sigma, size=readings.shape), readings.size)

    table = Table(title="Noisy readings per second")
    for name in ("who", "steps", "rate", "note"):
        table.add_column(name, justify="right" if name in {"steps", "rate"} else "left")
    met = "goal 1,000,000: met" if ours >= GOAL else "goal 1,000,000: MISSED"
    table.add_row("Cloak.release", f"{cloak.ratios[0]:,.0f}", f"{ours:,.0f}", f"{met}; {_form(cloak.ratios[0])}")
    for ratio in RATIOS:
        alone, theirs = _noise_alone(ratio), _opendp(ratio)
        table.add_row("noise alone", f"{ratio:,.0f}", f"{alone:,.0f}", f"{alone / theirs:,.0f}x OpenDP; {_form(ratio)}")
        table.add_row("OpenDP, discrete Gaussian", f"{ratio:,.0f}", f"{theirs:,.0f}", "exact, integers")
    table.add_row("NumPy, float noise", "", f"{plain:,.0f}", "not private: the low bits leak")
    return table, ours >= GOAL


def _form(ratio: float) -> str:
    made = noise_table(float(ratio))
    levels = len(made.levels)
    return f"{levels} level{'s' if levels > 1 else ''}, {len(made.cuts) / 1000:.0f} kB"


def _noise_alone(ratio: float) -> float:
    tables = [noise_table(ratio)] * SENSORS
    return _rate(lambda: noise_of_frames(tables, FRAMES, private_words), SENSORS * FRAMES)


def _opendp(ratio: float) -> float:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    mechanism = dp.m.make_gaussian(*space, scale=ratio)
    integers = [0] * 50_000
    return _rate(lambda: mechanism(integers), len(integers))


def _rate(work: Callable[[], object], draws: int) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return draws / best
