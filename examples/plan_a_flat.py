# %% [markdown]
"""# Plan a flat: how much noise does it take?

Ms Adler runs a block of flats. She wants to heat the rooms in which people are, and no others, and for this she hangs
warmth sensors under the ceilings. The tenants say: the room, yes. But at which end of the sofa I sit is nobody's
business, and whoever reads the sensors could tell. So each sensor will add noise to its reading before it sends it.

**The question, before anything is bought:** how much noise, how many sensors, and does the heating still find the
room? Nobody lives in this flat yet: the person below is made up.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

import cloakwork as cw
from cloakwork.cli.draw import floor, outlines

# %% [markdown]
# ## The flat
#
# Walls are `#`, doors are `+`, and a character is half a metre. Warmth spreads through doors and not through walls.
# Sensors hang in rows, except where a wall is in the way.

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
    free = [at for at, cell in cells.items() if cell >= 0]  # walls have none
    return cw.FloorPlan(rooms, free, cw.Steady(reach=1.0), footprint=0.5, gain=5.0)


few, many = hang(2.0), hang(1.0)
print(f"{len(rooms.space)} cells, {rooms.doors} doors")
print(f"{few.sensors} sensors 2 m apart, or {many.sensors} sensors 1 m apart")

# %% [markdown]
# ## What to promise
#
# A promise says how far someone may move without anyone noticing (`alpha`), and how alike the readings then look
# (`epsilon`: whatever a watcher waits for is at most e^epsilon times likelier in the one case than in the other).
# Both cost noise, and noise costs knowledge. Ms Adler tries three promises. The last two columns say how well a
# person can be placed at best, as a standard deviation at a typical spot: with the same noise for all sensors, and
# with noise that is designed for each of them, at the same promise.

# %%
PROMISES = {
    "10 cm at epsilon 4": (0.1, 4.0),
    "50 cm at epsilon 4": (0.5, 4.0),
    "50 cm at epsilon 1": (0.5, 1.0),
}
print(f"{'hidden':18}  {'sensors':>7}  {'same noise':>10}  {'designed':>8}")
cloaks = {}
for name, (alpha, epsilon) in PROMISES.items():
    for flat in (few, many):
        cloaks[name] = cw.Cloak(flat, epsilon=epsilon, delta=1e-5, alpha=alpha, design="least-error")
        report = cloaks[name].design_report
        print(f"{name:18}  {flat.sensors:7}  {report.equal_vicinity:8.2f} m  {report.vicinity:6.2f} m")

# %% [markdown]
# ## What the heating would see
#
# Someone stands in the room at the top left. What does an analyst make of one noisy reading of each of the many
# sensors, who knows that one person is there? `simulate` spends no budget and hides nothing: it is for planning, with
# people who do not exist.

# %%
PERSON = (2.25, 4.25)
warmth = np.tile(many.apply(cw.sources(many, [PERSON])), (60, 1))  # 60 readings of the same
someone = cw.PointSources(strength=1.0, most=1, least=1)
found = {}
for name, cloak in cloaks.items():
    frames = cloak.simulate(warmth, rng=np.random.default_rng(8))
    found[name] = cw.recover(frames, cloak, estimator=someone).sources
    area = np.mean([len(sources[0].vicinity) for sources in found[name]]) * rooms.cell**2
    x, y = np.transpose([rooms.space.places[sources[0].place] for sources in found[name]])
    right = np.mean((x < 5) & (y > 3))
    print(f"{name}: somewhere on {area:4.1f} m2; best guess in the right room {right:4.0%}")

# %% [markdown]
# The numbers are about all of the 60 readings, the picture has the first of them. The cross is the best guess.

# %%
figure, panels = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained", sharey=True)
figure.suptitle("Where the person is (dot), and where they may be for the analyst (shaded)")
for axes, (name, readings) in zip(panels, found.items(), strict=True):
    inside = np.isin(np.arange(len(rooms.space)), readings[0][0].vicinity)
    floor(axes, rooms, inside.astype(float), limit=3)
    outlines(axes, rooms, readings[0])
    axes.plot(*PERSON, "o", color="#1f5fa8")
    axes.set_title(f"hidden: {name}", fontsize=10)

# %% [markdown]
# The weak promise gives the chair away. The strong one hides so much that the heating is wrong more often than right.
# In the middle, the heating mostly learns the room, and nobody learns the chair.
#
# ## What it costs, in words
#
# This is what Ms Adler puts before the tenants: the promise in the middle, and where it ends.

# %%
print(cloaks["50 cm at epsilon 4"].explain())

# %% [markdown]
# ## What cannot be concluded
#
# - That someone is at home, how many they are, and in which room, is not hidden, and was not meant to be.
# - The promise is about one reading of all sensors. Who sits still is read again and again, and someone who keeps all
#   of it averages the noise away: "over many windows", above, says how fast.
# - It stands and falls with the model of how warmth spreads. A tolerance of the model can be declared, and costs
#   noise.
#
# **Read on:** [Site files](../docs/site-files.md) have the same plan in a file, [Privacy](../docs/privacy.md) says
# what the promise means, and [Limits](../docs/limits.md) where it ends.

# %% tags=["remove-cell"]
if "__file__" in globals():  # python examples/plan_a_flat.py [picture.png]
    import sys
    from pathlib import Path

    named = [Path(word) for word in sys.argv[1:] if word.endswith(".png")]
    picture = named[0] if named else Path(__file__).parents[1] / "out" / "plan_a_flat.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=150)
    print(f"\npicture: {picture}")
