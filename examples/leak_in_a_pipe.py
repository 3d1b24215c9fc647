# %% [markdown]
"""# A leak in a pipe: where to dig, but not who pays

A gas pipe runs 120 m under a street, past a row of gardens. It leaks, and a crew must know where to dig: a trench of
a few metres will do. The side of a fence on which the leak lies decides who pays, and that is settled by looking, not
by a model. So the neighbours share the readings of 60 gas sensors on one condition: the readings must not reveal
whether a leak is half a metre further one way or the other.

**The question:** does the crew still find the leaks? The street and its leaks are made up.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

import cloakwork as cw

# %% [markdown]
# ## The pipe and the promise
#
# The gas spreads along the pipe for a while (`T`) before the sensors read. A leak may be at any of 240 places, half a
# metre apart. The promise: a leak that moves by `alpha`, half a metre, makes no event more than e = 2.7 times
# likelier, up to a chance of one in a million.

# %%
pipe = cw.HeatLine(n=240, m=60, T=30.0, length=120.0, placement=cw.Placement.ANYWHERE)
cloak = cw.Cloak(pipe, epsilon=1.0, delta=1e-6, alpha=0.5)
print(f"a hidden move shifts the readings by at most {cloak.sensitivity:.4f}")
print(f"each sensor adds noise of standard deviation  {cloak.sigma:.4f}")

# %% [markdown]
# ## What the sensors send
#
# There are two leaks of the same known strength. In a real street `true` would never leave the sensors; here it is made
# up, and we keep it for the picture. `release` draws noise from the operating system and counts the budget it spends,
# so this page differs each time it is built.

# %%
leaks = cw.sources(pipe, [31.0, 88.5])
true = pipe.apply(leaks)
noisy = cloak.release(true)
print(f"{len(noisy)} readings sent; the strongest is {noisy.max() / cloak.sigma:.1f} times the noise")

# %% [markdown]
# ## What the crew learns
#
# The crew has the noisy readings, and knows the pipe, the noise and the strength of a leak. It does not know the number
# of leaks: `counts` holds the probability of 0, 1, 2, ... leaks.

# %%
found = cw.recover(noisy, cloak, estimator=cw.PointSources(strength=1.0))
for leak in found.sources:
    where = f"at {leak.at:5.1f} m, or within {leak.radius:.1f} m of it"
    print(f"a leak {where} (probability {leak.probability:.0%})")
likely = {number: f"{chance:.0%}" for number, chance in enumerate(found.counts) if chance > 0.005}
print("how many leaks, and how likely:", likely)

# %% [markdown]
# The picture shades the stretch where each leak may be; the fainter the shade, the less likely the leak exists.

# %%
figure, (above, below) = plt.subplots(2, 1, figsize=(9, 4.6), layout="constrained", sharex=True)
above.set_title("60 noisy readings, two leaks, and where the crew would dig")
above.plot(pipe.sensor_positions[:, 0], noisy, "o", color="#9a9a9a", markersize=4, label="sent")
above.plot(pipe.sensor_positions[:, 0], true, color="#1f5fa8", label="true (made up)")
above.set_ylabel("gas")
below.bar(pipe.space.places[:, 0], found.map, width=0.5, color="#e07b39", label="recovered")
for leak in found.sources:
    start, end = leak.at - leak.radius, leak.at + leak.radius
    below.axvspan(start, end, color="#e07b39", alpha=leak.probability / 3, linewidth=0)
below.plot([31, 88.5], [0, 0], "^", color="#1f5fa8", markersize=10, clip_on=False, label="leaks (made up)")
below.set(xlabel="metres along the pipe", ylabel="weight")
for axes in (above, below):
    axes.legend(loc="upper right")

# %% [markdown]
# A single reading reveals next to nothing, but all of them together point to stretches of a few metres: short enough
# for a trench, too long to tell on which side of a fence a leak lies.
#
# ## Was that luck?
#
# 30 more frames of the same street give the average error. `simulate` is made for such trials: it spends no budget and
# protects nothing. The second line is for a crew that does not know the strength of a leak, and looks for the smallest
# map that fits.

# %%
frames = cloak.simulate(np.tile(true, (30, 1)), rng=np.random.default_rng(1))
knowing = {"strength known": cw.PointSources(strength=1.0), "nothing known": cw.BasisPursuit()}
for name, estimator in knowing.items():
    maps = [row for row in cw.recover(frames, cloak, estimator=estimator).map if row.any()]
    error = np.mean([cw.emd(row, leaks, pipe.space) for row in maps])
    empty = f"; {len(frames) - len(maps)} of {len(frames)} maps were empty" if len(maps) < len(frames) else ""
    print(f"{name:14}: off by {error:.1f} m on average (earth mover distance){empty}")
print(cw.limits(pipe, cloak.sigma))

# %% [markdown]
# ## What it cost
#
# One frame spends the whole promise. Each further frame of the same leaks weakens it:

# %%
for times in (1, 2, 10):
    print(f"frames: {times:2}, epsilon {cloak.profile.compose(times).epsilon(1e-6):.1f}")

# %% [markdown]
# ## What cannot be concluded
#
# - The promise does not hide that there are leaks, roughly how many, or how strong they are. It also fades with
#   distance: a leak that moves by ten times `alpha` shifts the readings up to ten times as far.
# - If the shaded stretch covers more than the garden of number 12, the leak need not be in that garden. Two leaks that
#   are closer together than the limit above look like one between them.
# - If the gas spreads differently from the model, neither the promise nor the vicinities hold as stated.
#
# **Read on:** [Point sources](../docs/science/point-sources.md) for the estimator,
# [Accuracy](../docs/science/accuracy.md) for the
# earth mover distance and the limits that no method can beat,
# [Physics](../docs/science/physics.md) for shapes other than a line.

# %% tags=["remove-cell"]
if "__file__" in globals():  # python examples/leak_in_a_pipe.py [picture.png]
    import sys
    from pathlib import Path

    named = [Path(word) for word in sys.argv[1:] if word.endswith(".png")]
    picture = named[0] if named else Path(__file__).parents[1] / "out" / "leak_in_a_pipe.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=150)
    print(f"\npicture: {picture}")
