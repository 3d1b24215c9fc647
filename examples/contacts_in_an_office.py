# %% [markdown]
"""# Contacts in an office: which teams meet, and not who

A firm has moved into a new building. The management wants to know whether its four departments still talk to each
other, and whether new circles have formed across them. Badges can sense who meets whom. The staff agree to the first
question, and not to a list of who had lunch with whom. So every badge flips its bits before it sends them.

**The question:** at which epsilon does the management get its answer, what does it learn besides, and what not? The
firm is made up.
"""

# %%
import numpy as np
from matplotlib import pyplot as plt

import cloakwork as cw

# %% [markdown]
# ## The office
#
# 600 people in four departments. On one day, 12 % of all pairs within a department meet. Sales and service share
# a floor, and meet more than others do. No one outside this simulation ever sees `office.met`.

# %%
NAMES = ("development", "sales", "service", "finance")
SHARES = (0.4, 0.25, 0.2, 0.15)
truth = cw.Blocks(
    [
        [0.12, 0.01, 0.01, 0.01],
        [0.01, 0.12, 0.06, 0.01],
        [0.01, 0.06, 0.12, 0.01],
        [0.01, 0.01, 0.01, 0.12],
    ],
    shares=SHARES,
)
rng = np.random.default_rng(7)
office = truth.sample(600, rng=rng)
contacts = office.met.sum(axis=1)
print(f"{len(office.labels)} people, {office.met.nnz // 2:,} pairs met; a person meets {contacts.mean():.0f} others")

# %% [markdown]
# ## Three promises
#
# The departments are no secret, so the management may count reports between them. Every badge flips the bit of each of
# its pairs with the same probability; counting takes the flips off again, on average.

# %%
answers = {}
print("epsilon  flipped  sales and service    sales and finance")
for epsilon in (0.5, 1.0, 2.0):
    flip = cw.Flip(epsilon=epsilon, readings_per_window=1)
    reports = cw.simulate_contacts(office.met, flip, rng=rng)
    answers[epsilon] = cw.communities(reports, labels=office.labels, flip=flip)
    shown = answers[epsilon]
    near, far = (f"{100 * shown.densities[1, k]:5.1f} % ± {100 * shown.errors[1, k]:.1f}" for k in (2, 3))
    print(f"{epsilon:7}  {100 * flip.other:5.0f} %  {near:>17}  {far:>19}")

# %% [markdown]
# At epsilon 1, where a badge lies about one pair in four, sales and service stand out: there are 18,000 pairs between
# them, and the flips average out. At 0.5 the answer is lost in the noise, and the errors say so.
#
# ## Circles that are on no chart
#
# Whether people form groups that no one has named is a harder question: the labels are unknown, too. `plan_communities`
# says beforehand whether it can be answered, for groups that one expects.

# %%
print("epsilon  signal to noise  right, by plan  right, in fact  groups found")
for epsilon in (1.0, 2.0, 3.0):
    plan = cw.plan_communities(n=600, blocks=truth, epsilon=epsilon)
    flip = cw.Flip(epsilon=epsilon, readings_per_window=1)
    found = cw.communities(cw.simulate_contacts(office.met, flip, rng=rng), k=4, flip=flip)
    match = [np.bincount(office.labels[found.labels == k]).max() for k in range(len(found.densities))]
    fact = sum(match) / 600
    print(f"{epsilon:7}  {plan.snr:15.2f}  {plan.right:14.0%}  {fact:14.0%}  {'yes' if found.findable else 'no':>12}")

# %% [markdown]
# At epsilon 1 the signal is at the edge of what any method can use. Nothing stands out, all people are one group, and
# the share is that of the largest department. At 2 the circles show, and sales and service look like one; at 3 they
# come apart.
#
# ## What the boss cannot ask
#
# Did Ann of sales meet Ben of finance? Before any report, one in a hundred such pairs does. A report changes that by
# at most a factor of e^epsilon in the odds, whatever else the boss knows about everyone else's reports.

# %%
print("epsilon  a report of 1: they met  a report of 0: they met")
for epsilon in (0.5, 1.0, 2.0):
    flip = cw.Flip(epsilon=epsilon, readings_per_window=1)
    yes, no = (0.01 * p / (0.01 * p + 0.99 * (1 - p)) for p in (flip.truth, flip.other))
    print(f"{epsilon:7}  {100 * yes:22.1f} %  {100 * no:22.1f} %")

# %% [markdown]
# In the picture, a dot is a pair, and people are sorted by department: on the left the truth, in the middle what the
# badges send at epsilon 1. On the right, how much departments meet, as the management sees it, with bars of two
# standard errors, and the truth as a line.

# %%
figure, panels = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
figure.suptitle("Who meets whom: the truth, the reports, and what can be concluded")
flip = cw.Flip(epsilon=1.0, readings_per_window=1)
reports = cw.simulate_contacts(office.met, flip, rng=rng)
order = np.argsort(office.labels, kind="stable")
for axes, table, title in zip(panels, (office.met, reports), ("truth", "reports at epsilon 1"), strict=False):
    axes.imshow(table.toarray()[np.ix_(order, order)], cmap="Blues", interpolation="nearest")
    axes.set(title=title, xticks=[], yticks=[])
pairs = [(a, b) for a in range(4) for b in range(a, 4)]
shown = answers[1.0]
for row, (a, b) in enumerate(pairs):
    bar = 200 * shown.errors[a, b]
    panels[2].errorbar(100 * shown.densities[a, b], row, xerr=bar, fmt="o", color="#1f5fa8", markersize=4)
    panels[2].plot([100 * truth.matrix[a, b]] * 2, [row - 0.3, row + 0.3], color="#e07b39")
names = [NAMES[a] if a == b else f"{NAMES[a]}, {NAMES[b]}" for a, b in pairs]
panels[2].set_yticks(range(len(pairs)), names, fontsize=8)
panels[2].invert_yaxis()
panels[2].set(title="percent of pairs that meet", xlim=(-2, None))

# %% [markdown]
# ## What it cost
#
# The promise is about one pair on one day. All contacts of a person are many bits, and a week is five days:

# %%
typical = round(contacts.mean())
print(f"one pair, one day: epsilon 1; all {typical} contacts of a person: {flip.compose(typical, 1e-6):.0f}")
print(f"one pair that may meet every day, five days: {flip.compose(5, 0.0):.0f}")
degrees = np.sqrt(len(contacts) * flip.other * flip.truth) / (flip.truth - flip.other)
print(
    f"the number of contacts of a person shows with an error of {degrees:.0f}, and they differ by {contacts.std():.0f}"
)

# %% [markdown]
# ## What cannot be concluded
#
# - A person's group is not hidden. At epsilon 2 the reports put most people into their department without being told,
#   and they would do the same with a union or a clique. If that must stay secret, do not collect contacts.
# - Whether two given people met stays nearly open at epsilon 1. Over many days, or at a larger epsilon, it does not.
# - Leaving out names does not help: someone who knows a dozen contacts of a person can often tell which row of reports
#   is theirs.
# - An empty answer is an answer about the noise. "No group stands out" does not mean that there is none.
#
# **Read on:** [Communities](../docs/science/communities.md) for the promise and the threshold,
# [Bits](../docs/science/bits.md) for flips, [Results](../docs/science/results.md#graphons) for the measurements.

# %% tags=["remove-cell"]
if "__file__" in globals():  # python examples/contacts_in_an_office.py [picture.png]
    import sys
    from pathlib import Path

    named = [Path(word) for word in sys.argv[1:] if word.endswith(".png")]
    picture = named[0] if named else Path(__file__).parents[1] / "out" / "contacts_in_an_office.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=150)
    print(f"\npicture: {picture}")
