"""Where does a pipe leak? 60 gas sensors along 120 m, each with noise of its own.

Run: python examples/leak_in_a_pipe.py
"""

import numpy as np

import cloakwork as cw

pipe = cw.HeatLine(n=240, m=60, T=30.0, length=120.0, placement=cw.Placement.ANYWHERE)
cloak = cw.Cloak(pipe, epsilon=1.0, delta=1e-6, alpha=0.5)
print(cloak.explain(), "\n")

leaks = cw.sources(pipe, [31.0, 88.5])
found = cw.recover(cloak.release(pipe.apply(leaks)), cloak)
print(found)
print(f"earth mover distance to the truth: {cw.emd(found.map, leaks, pipe.space):.2f} m" if found.map.any() else "")

# How good is it on average? simulate() spends no privacy budget, and is not private.
frames = cloak.simulate(np.tile(pipe.apply(leaks), (500, 1)), rng=np.random.default_rng(1))
maps = [row for row in cw.recover(frames, cloak).map if row.any()]
print(f"average over 500 frames: {np.mean([cw.emd(row, leaks, pipe.space) for row in maps]):.2f} m")
