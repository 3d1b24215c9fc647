# %% [markdown]
"""# Audit a sensor: does it keep its word?

Mr Okafor has a warmth sensor in his corridor. The label says: "a step of half a metre is hidden, epsilon 1, delta
0.001". He cannot open the device, and he need not believe it. But he can warm one spot of the corridor, note what the
device reports, warm a spot half a metre on, and note that, too. If the label is true, no way of looking at the
reports can tell the two spots apart too well.

**The question:** do the reports agree with the label? Here are two devices that we made up: one adds the noise that
it promises, the other two thirds of it, and looks just the same from outside.
"""

# %%
from functools import partial

import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray

import cloakwork as cw

# %% [markdown]
# ## The promise, and the bench
#
# 20 m of corridor with 20 sensors. `Scope.SENSOR` says that the promise is about one sensor alone. The bench is the
# sensor whose reading differs most between the two spots.

# %%
EPSILON, DELTA = 1.0, 1e-3
corridor = cw.HeatLine(n=40, m=20, T=2.0, length=20.0)
cloak = cw.Cloak(corridor, epsilon=EPSILON, delta=DELTA, alpha=0.5, scope=cw.Scope.SENSOR)
warm = [corridor.apply(cw.sources(corridor, [at])) for at in (9.5, 10.0)]
apart = np.abs(warm[0] - warm[1])
sensor = int(np.argmax(apart))
print(f"sensor {sensor}: the spots differ by {apart[sensor]:.3f}, the noise should be {cloak.sigma:.3f}")


def device(spot: int, size: int, rng: np.random.Generator, *, share: float) -> NDArray[np.float64]:
    """A black box: a spot goes in, whole numbers come out. It adds this share of the noise that was promised."""
    truth = np.tile(warm[spot], (size, 1))
    noise = share * (cloak.simulate(truth, rng=rng) - truth)
    return np.asarray(np.rint((truth + noise)[:, sensor] / cloak.step))


# %% [markdown]
# ## The device that keeps its word
#
# `audit` asks for reports on one spot and on the other, searches for an event that tells them apart too well, and
# stops as soon as it has one.

# %%
check = partial(cw.audit, epsilon=EPSILON, delta=DELTA, reports=60_000)
honest = check(partial(device, share=1.0), rng=np.random.default_rng(1))
print(honest)

# %% [markdown]
# ## The device that saves on noise

# %%
cheat = check(partial(device, share=2 / 3), rng=np.random.default_rng(1))
print(cheat)

# %% [markdown]
# The witness is something that Mr Okafor can show to anybody: an event, and how often it happened with each spot. It
# is too frequent with one of them for how rare it is with the other.
#
# ## The picture
#
# How much a device gives away is a curve: for every epsilon, the delta that goes with it. A label is a point, and it
# is true if the curve runs below it. The curves here are estimated from the reports. The bands are cautious, since
# they hold for all epsilons at once; the verdict comes from a sharper test of this one label.

# %%
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
figure.suptitle("What the reports show (curve), and what the label says (cross)")
results = {"all of the noise": honest, "two thirds of the noise": cheat}
for axes, (name, result) in zip(panels, results.items(), strict=True):
    curve = result.profile
    axes.fill_between(curve.epsilons, curve.lower, curve.upper, alpha=0.25, label="95 % band")
    axes.plot(curve.epsilons, curve.estimate, label="estimate")
    axes.plot([EPSILON], [DELTA], "kx", label="label")
    axes.legend(loc="upper right")
    axes.set(xlabel="epsilon", ylabel="delta", title=f"{name}: {result.verdict}")
    axes.set(xlim=(0, 2.5), yscale="log", ylim=(3e-4, 1))

# %% [markdown]
# ## What it cost
#
# Reports, and so time. Two spots that are further apart need far fewer of them: see the ten minutes, below.

# %%
for name, result in results.items():
    print(f"{name}: {result.verdict}, after {result.reports_used:,} reports with each spot")

# %% [markdown]
# ## What cannot be concluded
#
# - "No violation found" is no certificate. A device may cheat with other spots, in a way that shows in no event that
#   was tried, or only when nobody looks.
# - A violation is found with 95 % confidence: of a hundred honest devices, some may be called cheats, at most five.
# - Whether the promise is a good one is another question. An audit compares a device with its label.
#
# **Read on:** [Auditing](../docs/guides/audit-a-device.md) has the ten minutes with a real device and what was tried,
# [Threat model](../docs/science/threat-model.md) says who else may learn what.

# %% tags=["remove-cell"]
if "__file__" in globals():  # python examples/audit_a_sensor.py [picture.png]
    import sys
    from pathlib import Path

    named = [Path(word) for word in sys.argv[1:] if word.endswith(".png")]
    picture = named[0] if named else Path(__file__).parents[1] / "out" / "audit_a_sensor.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=150)
    print(f"\npicture: {picture}")
