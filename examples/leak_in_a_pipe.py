"""Where does a pipe leak? 60 gas sensors along 120 m, each with noise of its own.

Run: python examples/leak_in_a_pipe.py
"""

import numpy as np

import cloakwork as cw

pipe = cw.HeatLine(n=240, m=60, T=30.0, length=120.0, placement=cw.Placement.ANYWHERE)
cloak = cw.Cloak(pipe, epsilon=1.0, delta=1e-6, alpha=0.5)
print(cloak.explain(), "\n")

leaks = cw.sources(pipe, [31.0, 88.5])
noisy = cloak.release(pipe.apply(leaks))
found = cw.recover(noisy, cloak, estimator=cw.PointSources(strength=1.0))  # what a leak emits is known
print(found)
print(f"earth mover distance to the truth: {cw.emd(found.map, leaks, pipe.space):.2f} m")
print(cw.limits(pipe, cloak.sigma), "\n")

# How good is it on average? simulate() spends no privacy budget, and is not private.
frames = cloak.simulate(np.tile(pipe.apply(leaks), (200, 1)), rng=np.random.default_rng(1))
for name, estimator in (("strengths known", cw.PointSources(strength=1.0)), ("nothing known", cw.BasisPursuit())):
    maps = [row for row in cw.recover(frames, cloak, estimator=estimator).map if row.any()]
    error = np.mean([cw.emd(row, leaks, pipe.space) for row in maps])
    print(f"{name}: {error:.2f} m on average over 200 frames")
