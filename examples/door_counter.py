"""How busy is the library? A door counter publishes its hours, and gives no single visit and no reader away.

Run: python examples/door_counter.py [visits.csv]

With the name of a file, the made-up visits are written there, to try `cloakwork series` on.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import cloakwork as cw

HOUR, WEEKS = 3_600_000, 4
monday = int(datetime(2026, 10, 5, tzinfo=UTC).timestamp() * 1000)
hours = cw.Bins(monday, HOUR, WEEKS * 7 * 24)  # public, and so is how many there are

# Who came when: 2,500 readers have cards, most come now and then, a few nearly live here.
rng = np.random.default_rng(8)
clock, weekday = np.arange(hours.n) % 24, np.arange(hours.n) // 24 % 7
rush = np.exp(-(((clock - 11) / 2.5) ** 2)) + 1.4 * np.exp(-(((clock - 17) / 2) ** 2))
visits = rng.poisson(60 * rush * np.where(weekday < 5, 1.0, 0.45) * np.linspace(1.0, 1.25, hours.n))
times = np.sort(np.repeat(hours.times, visits) + rng.integers(0, HOUR, visits.sum()))
often = rng.lognormal(0.0, 0.7, 2500)
cards = rng.choice(len(often), len(times), p=often / often.sum())

if len(sys.argv) > 1 and sys.argv[1].endswith(".csv"):
    moments = (datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds") for time in times)
    rows = (f"{moment},{card}" for moment, card in zip(moments, cards, strict=True))
    Path(sys.argv[1]).write_text("\n".join(["time,card", *rows]) + "\n", encoding="utf-8")

each_visit = cw.tally(times, hours)
each_reader = cw.tally(times, hours, persons=cards, most_per_person=10)
print(f"for us alone: {each_reader.losses.over_limit:,} of {len(times):,} visits are above ten of one reader\n")

for hidden, counted in (("each visit", each_visit), ("each reader", each_reader)):
    cloak = counted.cloak(cw.Trend(24), epsilon=1.0, delta=1e-6)  # a centred mean over one day
    published = cloak.release(counted.values)
    print(f"hidden: {hidden}")
    for week in range(WEEKS):
        noon = (7 * week + 2) * 24 + 12
        print(f"  Wednesday of week {week + 1}: {published.values[0, noon]:.1f} visits an hour", end="")
        print(f", within {published.band()[noon]:.1f} in 95 % of cases")

print()
print(published.explain())
