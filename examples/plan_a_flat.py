# %% [markdown]
"""# Plan a flat: how much noise does it take?

Ms Adler manages a block of flats. She wants to heat only the rooms that people are in, so she hangs warmth sensors
under the ceilings. The tenants agree to share the room they are in. But which end of the sofa they sit at is their own
business, and the readings of the sensors would reveal it. So each sensor will add noise to its reading before it sends
it.

**The question, before buying anything:** how much noise, how many sensors, and does the heating still find the room?
No one lives in this flat yet: the person below is made up.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

import cloakwork as cw
from cloakwork.cli.draw import floor, outline

# %% [markdown]
# ## The flat
#
# Walls are `#`, doors are `+`, and each character is half a metre. Warmth spreads through doors but not through walls.
# Sensors hang in rows, except where there is a wall.

# %%
PLAN = """
####################
#........#.........#
#........#.........#
#........+.........#
#........+.........#
#........#.........#
####++####.........#
#........#.........#
#........+.........#
#........+.........#
#........#.........#
####################
"""
rooms = cw.Rooms.from_text(PLAN, cell=0.5)


def hang(spacing: float) -> cw.FloorPlan:
    """Sensors in rows, this many metres apart."""
    columns, rows = (np.arange(spacing / 2, size, spacing) for size in rooms.size)
    cells = {(x, y): rooms.grid[int(y / rooms.cell), int(x / rooms.cell)] for x in columns for y in rows}
    free = [at for at, cell in cells.items() if cell >= 0]  # no sensors inside walls
    return cw.FloorPlan(rooms, free, cw.Steady(reach=1.0), footprint=0.5, gain=5.0)


few, many = hang(2.0), hang(1.0)
print(f"{len(rooms.space)} cells, {rooms.doors} doors")
print(f"{few.sensors} sensors 2 m apart, or {many.sensors} sensors 1 m apart")

# %% [markdown]
# ## What to promise
#
# A promise states how far someone may move unnoticed (`alpha`), and how alike the readings then look (`epsilon`: any
# event that an observer looks for is at most e^epsilon times as likely in one case as in the other). Both take noise,
# and noise hides useful information too. Ms Adler tries three promises. The last two columns show how well an unbiased
# method can locate a person, as a standard deviation at a typical spot: with equal noise on all sensors, and with noise
# that is designed for each sensor, at the same promise.

# %%
PROMISES = {
    "10 cm at epsilon 4": (0.1, 4.0),
    "50 cm at epsilon 4": (0.5, 4.0),
    "50 cm at epsilon 1": (0.5, 1.0),
}
print(f"{'hidden':18}  {'sensors':>7}  {'equal noise':>11}  {'designed':>8}")
cloaks = {}
for name, (alpha, epsilon) in PROMISES.items():
    for flat in (few, many):
        cloaks[name] = cw.Cloak(flat, epsilon=epsilon, delta=1e-5, alpha=alpha, design="least-error")
        report = cloaks[name].design_report
        print(f"{name:18}  {flat.sensors:7}  {report.equal_vicinity:9.2f} m  {report.vicinity:6.2f} m")

# %% [markdown]
# ## What the heating would see
#
# Someone stands in the room at the top left. An analyst knows that one person is there and has one noisy reading from
# each of the many sensors. What can the analyst conclude? `simulate` spends no budget and hides nothing: it is for
# planning, with people who do not exist.

# %%
PERSON = (2.25, 4.25)
warmth = np.tile(many.apply(cw.sources(many, [PERSON])), (60, 1))  # 60 readings of the same scene
someone = cw.PointSources(strength=1.0, max_sources=1, min_sources=1)
located = {}
for name, cloak in cloaks.items():
    frames = cloak.simulate(warmth, rng=np.random.default_rng(8))
    located[name] = cw.recover(frames, cloak, estimator=someone).sources
    area = np.mean([len(sources[0].vicinity) for sources in located[name]]) * rooms.cell**2
    x, y = np.transpose([rooms.space.places[sources[0].place] for sources in located[name]])
    right = np.mean((x < 5) & (y > 3))
    print(f"{name}: somewhere on {area:4.1f} m2; best guess in the right room {right:4.0%}")

# %% [markdown]
# The numbers cover all 60 readings; the picture shows the first one. The cross is the best guess.

# %%
figure, panels = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained", sharey=True)
figure.suptitle("Where the person is (dot), and where the analyst places them (shaded)")
for axes, (name, readings) in zip(panels, located.items(), strict=True):
    inside = np.isin(np.arange(len(rooms.space)), readings[0][0].vicinity)
    floor(axes, rooms, inside.astype(float), limit=3)
    for source in readings[0]:
        outline(axes, rooms, source)
        axes.plot(*source.at, "x", color="#b3261e", markersize=9, markeredgewidth=2)
    axes.plot(*PERSON, "o", color="#1f5fa8")
    axes.set_title(f"hidden: {name}", fontsize=10)

# %% [markdown]
# The weak promise reveals the chair. The strong one hides so much that the heating is wrong more often than right. With
# the promise in between, one reading mostly reveals the room, and not the chair.
#
# ## What it costs, in words
#
# Ms Adler shows this to the tenants: the promise in between, and where it ends.

# %%
print(cloaks["50 cm at epsilon 4"].explain())

# %% [markdown]
# ## What cannot be concluded
#
# - The promise does not hide, and is not meant to hide, that people are at home, how many, and in which room.
# - The promise covers one reading of all sensors. A person who sits still is measured again and again, and an observer
#   who keeps all readings can average the noise away: the last two points under "not hidden", above, show how fast.
# - The promise depends on the model of how warmth spreads. A declared tolerance covers errors of the model, and takes
#   more noise.
#
# **Read on:** [Site files](../docs/reference/site-files.md) describe the same plan in a file,
# [Privacy](../docs/science/privacy.md) explains the promise, and
# [Limits](../docs/science/limits.md) shows where it ends.

# %% tags=["remove-cell"]
if "__file__" in globals():  # python examples/plan_a_flat.py [picture.png]
    import sys
    from pathlib import Path

    named = [Path(word) for word in sys.argv[1:] if word.endswith(".png")]
    picture = named[0] if named else Path(__file__).parents[1] / "out" / "plan_a_flat.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=150)
    print(f"\npicture: {picture}")
