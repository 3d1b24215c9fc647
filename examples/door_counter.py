# %% [markdown]
"""# A door counter: publish the hours, and not the readers

A town library counts who comes through its door. The council wants to see how busy it is, week by week, to decide on
opening hours. The door knows more than that: readers open it with their cards, and from the raw list anyone could
tell who was there on Thursday at nine in the evening.

**The question:** can the curve be public, and every visit, or even every reader, stay private? The library and its
readers are made up, or you would not see a true number on this page.
"""

# %%
from datetime import UTC, datetime

import numpy as np
from matplotlib import pyplot as plt

import cloakwork as cw

# %% [markdown]
# ## Four weeks at the door
#
# 2,500 readers have cards. Most come now and then, a few nearly live here. There is a rush before lunch and one after
# work, weekends are quiet, and each week is a little busier than the last.

# %%
HOUR, WEEKS = 3_600_000, 4
monday = int(datetime(2026, 10, 5, tzinfo=UTC).timestamp() * 1000)
hours = cw.Bins(monday, HOUR, WEEKS * 7 * 24)  # public, and so is how many there are

rng = np.random.default_rng(8)
clock, weekday = np.arange(hours.n) % 24, np.arange(hours.n) // 24 % 7
rush = np.exp(-(((clock - 11) / 2.5) ** 2)) + 1.4 * np.exp(-(((clock - 17) / 2) ** 2))
visits = rng.poisson(60 * rush * np.where(weekday < 5, 1.0, 0.45) * np.linspace(1.0, 1.25, hours.n))
times = np.sort(np.repeat(hours.times, visits) + rng.integers(0, HOUR, visits.sum()))
often = rng.lognormal(0.0, 0.7, 2500)
cards = rng.choice(len(often), len(times), p=often / often.sum())
print(f"{len(times):,} visits in {hours.n} hours")
print(f"the busiest reader came {np.bincount(cards).max()} times")

# %% [markdown]
# ## What to hide: a visit, or a reader
#
# To hide **each visit** means that no one can be sure whether it took place. A daily visitor is hidden less,
# for their visits add up. To hide **each reader** means all that they did in the four weeks. For that, one reader
# must not count without limit: here at most ten visits of each do, and the others are dropped before anything is
# published.

# %%
counted = {
    "each visit": cw.tally(times, hours),
    "each reader": cw.tally(times, hours, persons=cards, most_per_person=10),
}
dropped = counted["each reader"].losses["events above the limit of their person"]
print(f"for us alone: to hide readers, {dropped:,} of {len(times):,} visits do not count")

# %% [markdown]
# ## Publish
#
# The council asked how busy it is, not who came at nine: a mean over one day around each hour. `release` works out
# the best noise for exactly this question, draws it from the operating system, and can be asked once. "Give or take"
# holds in 95 % of cases.

# %%
published = {}
for hidden, counts in counted.items():
    cloak = counts.cloak(cw.Trend(24), epsilon=1.0, delta=1e-6)
    published[hidden] = cloak.release(counts.values)
    print(f"hidden: {hidden}")
    for week in range(WEEKS):
        noon = (7 * week + 2) * 24 + 12
        value, band = published[hidden].values[0, noon], published[hidden].band()[noon]
        print(f"  Wednesday of week {week + 1}: {value:4.1f} visits an hour, give or take {band:.1f}")

# %% [markdown]
# ## The picture
#
# The grey line is the truth, which only a made-up library can show.

# %%
figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
figure.suptitle("Visits an hour, over a day: published with a band (blue), and true (grey, made up)")
all_visits = counted["each visit"].values
for axes, (hidden, series) in zip(panels, published.items(), strict=True):
    values, band = series.values[0], series.band()
    axes.plot(values)
    axes.fill_between(range(hours.n), values - band, values + band, alpha=0.25, linewidth=0)
    axes.plot(series.cloak.without_noise(all_visits)[0, 0], color="#777777", linewidth=1)
    axes.set_xticks(range(0, hours.n + 1, 168), range(0, 7 * WEEKS + 1, 7))
    axes.set(title=f"hidden: {hidden}", xlabel="day", ylabel="visits an hour")

# %% [markdown]
# Single visits cost next to nothing to hide. Whole readers cost a wider band, and a curve that is too low, since
# their later visits were dropped: the band knows nothing of that. Weekdays and weekends show in both.
#
# ## What it cost
#
# In words, for the promise about readers:

# %%
print(published["each reader"].cloak.explain())

# %% [markdown]
# ## What cannot be concluded
#
# - Both curves were published here, from the same visits: someone who has both has spent both promises. A real
#   library picks one.
# - A rise from one week to the next that is smaller than the band is not a finding.
# - That the library was open, and about how many came in all, is not hidden: it is the point.
#
# **Read on:** [Private series](../docs/guides/private-series.md) has totals, streams and tables; for one
# command, `python examples/door_counter.py visits.csv` writes these visits to a file.
# [Limits](../docs/science/limits.md#private-series) says where the promise ends.

# %% tags=["remove-cell"]
if "__file__" in globals():  # python examples/door_counter.py [visits.csv] [picture.png]
    import sys
    from pathlib import Path

    for table in (Path(word) for word in sys.argv[1:] if word.endswith(".csv")):
        moments = (datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds") for time in times)
        rows = (f"{moment},{card}" for moment, card in zip(moments, cards, strict=True))
        table.write_text("\n".join(["time,card", *rows]) + "\n", encoding="utf-8")
    named = [Path(word) for word in sys.argv[1:] if word.endswith(".png")]
    picture = named[0] if named else Path(__file__).parents[1] / "out" / "door_counter.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=150)
    print(f"\npicture: {picture}")
