"""Waiting times (import, the first call after an install and of a later process, the demo) and peak memory."""

import os
import subprocess
import sys
import tempfile
import time

from rich.table import Table

IMPORT = "import time; t = time.perf_counter(); import cloakwork; print(time.perf_counter() - t)"
FIRST = """
import time, numpy as np, cloakwork as cw
line = cw.HeatLine(n=100, m=50, T=0.05)
cloak = cw.Cloak(line, epsilon=1.0, delta=1e-6, alpha=0.01)
cw.recover
t = time.perf_counter()
recovered = cw.recover(cloak.release(line.apply(cw.sources(line, [0.24, 0.76]))), cloak)
print(time.perf_counter() - t)
"""
DEMO = """
import time
from cloakwork.cli import demo
from cloakwork.demo import Demonstration, family, load_flat
site = load_flat()
with Demonstration((site, family(site.physics.rooms))) as show:
    show.wait_for(1, 600)
    print(time.time(), time.process_time())
"""
LARGE = """
import time, resource, numpy as np, cloakwork as cw
t = time.perf_counter()
rooms = cw.Rooms.from_walls((10, 10), cell=0.1, walls=[((5, 0), (5, 10))], doors=[((5, 4), (5, 5))])
at = [(x, y) for x in np.linspace(0.35, 9.65, 20) for y in np.linspace(0.5, 9.5, 10)]
plan = cw.FloorPlan(rooms, at, cw.Steady(1.0), footprint=0.5)
cloak = cw.Cloak(plan, epsilon=2, delta=1e-5, alpha=0.3)
cw.recover(cloak.release(plan.apply(cw.sources(plan, [(2, 2), (8, 7)]))), cloak)
print(time.perf_counter() - t, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    table = Table(title="Waiting")
    for name in ("what", "measured", "goal"):
        table.add_column(name, justify="left" if name == "what" else "right")
    imported = min(float(_python(IMPORT)[0]) for _ in range(3))
    with tempfile.TemporaryDirectory() as fresh:
        first = float(_python(FIRST, NUMBA_CACHE_DIR=fresh)[0])
        later = min(float(_python(FIRST, NUMBA_CACHE_DIR=fresh)[0]) for _ in range(2))
    with tempfile.TemporaryDirectory() as fresh:
        new_demo = _demo(fresh)
        demo = min(_demo(fresh) for _ in range(2))
    large = _python(LARGE)
    rows = (
        ("import cloakwork", imported, 0.3),
        ("first release and recovery after an install (compiles)", first, 20.0),
        ("first release and recovery in a later process", later, 1.0),
        ("first picture of the demo, the solvers compiled", demo[0], 15.0),
    )
    for what, seconds, goal in rows:
        table.add_row(what, f"{seconds:.3f} s", f"{goal:g} s: {'met' if seconds <= goal else 'MISSED'}")
    table.add_row("   processor time of that", f"{demo[1]:.1f} s", "")
    table.add_row("first picture of the demo after an install (compiles)", f"{new_demo[0]:.1f} s", "")
    table.add_row("   processor time of that", f"{new_demo[1]:.1f} s", "")
    table.add_row("10,000 cells, 200 sensors: plan, release, recover", f"{float(large[0]):.1f} s", "usable")
    table.add_row("   its peak memory", f"{float(large[1]):.0f} MB", "no n x n matrix (800 MB)")
    return table, all(seconds <= goal for _, seconds, goal in rows)


def _demo(cache: str) -> tuple[float, float]:
    """Seconds from the start of the process to the first picture, and its processor time until then."""
    began = time.time()
    seen, processor = _python(DEMO, NUMBA_CACHE_DIR=cache)
    return float(seen) - began, float(processor)


def _python(code: str, **environment: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=os.environ | environment
    )
    return ran.stdout.split()
