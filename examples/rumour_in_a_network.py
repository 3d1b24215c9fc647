# %% [markdown]
"""# A rumour in a network: which circle, and seldom who

A rumour spreads in a karate club. The committee wants to answer it where it began, in the right circle of friends. It
does not want a culprit, and the members would not help to find one. So each member reports how often they heard the
rumour, with noise that they add themselves.

**The question:** how much noise lets the committee learn the circle, and how well does it hide the person? The club is
real (Zachary recorded its friendships in the 1970s), the rumour is made up.
"""

# %%
from collections import Counter

import networkx as nx
import numpy as np
from matplotlib import pyplot as plt

import cloakwork as cw

# %% [markdown]
# ## The club
#
# A rumour spreads along friendships like heat along wires, at the same rate along each, for a time `tau`. Distance
# counts friendships: a friend of a friend is at distance 2.

# %%
friends = nx.karate_club_graph()
for _, _, friendship in friends.edges(data=True):
    friendship["weight"] = 1.0
club = cw.Graph(friends, tau=0.5)
START = 5
circle = {START, *friends[START]}
print(f"{len(friends)} members, {friends.number_of_edges()} friendships")
print(f"the rumour starts at member {START}; their circle is {sorted(circle)}")

# %% [markdown]
# ## Three promises
#
# `alpha` is the distance, in friendships, by which the start of a rumour may move unnoticed. Half a friendship sounds
# odd, but has a meaning: half of the rumour starts at a friend instead. The last column shows the promise of the same
# noise about a whole friendship, that is, about one member against one of their friends.

# %%
DELTA, PROMISES = 0.01, (0.2, 0.5, 1.0)
cloaks = {alpha: cw.Cloak(club, epsilon=4.0, delta=DELTA, alpha=alpha) for alpha in PROMISES}
print("alpha  epsilon  noise  epsilon about a whole friendship")
for alpha, cloak in cloaks.items():
    whole = cw.Profile(cloak.profile.mu / alpha).epsilon(DELTA)
    print(f"{alpha:5}  {cloak.epsilon:7}  {cloak.sigma:5.2f}  {whole:32.1f}")

# %% [markdown]
# ## Whom would the committee blame?
#
# The committee knows that one member started the rumour, and names the member who is nearest, on average, to all who
# fit the noisy reports. Someone who hunts for the culprit does it differently: they name the most likely member. We
# repeat this 200 times for each promise. `simulate` is made for such trials with made-up rumours; the members would use
# `release`, once. `bayes_risk` bounds how often any hunter is right if the rumour begins with a random member.

# %%
single = cw.PointSources(strength=1.0, max_sources=1, min_sources=1)
heard = np.tile(club.apply(cw.sources(club, [START])), (200, 1))
shares = {}
for alpha, cloak in cloaks.items():
    reports = cloak.simulate(heard, rng=np.random.default_rng(2))
    found = cw.recover(reports, cloak, estimator=single)
    blamed = Counter(sources[0].at for sources in found.sources)
    shares[alpha] = {who: blamed[who] / len(reports) for who in friends}
    near = sum(shares[alpha][who] for who in circle)
    hunted = (found.intensity.argmax(axis=1) == START).mean()
    best = cw.bayes_risk(club, cloak.sigmas).right_place
    print(f"alpha {alpha}: the committee blames member {START} {shares[alpha][START]:4.0%}, their circle {near:4.0%};")
    print(f"  a hunter names member {START} {hunted:4.0%}, and any member who began one in at most {best:4.0%}")
print(f"without any report: {1 / len(friends):.0%} and {len(circle) / len(friends):.0%}")

# %% [markdown]
# In the picture, the member who began the rumour is orange, their circle has rings, and members who are blamed more
# often are larger.

# %%
figure, panels = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
figure.suptitle(f"Who is blamed for a rumour of member {START}")
layout = nx.kamada_kawai_layout(friends)
for axes, (alpha, share) in zip(panels, shares.items(), strict=True):
    nx.draw_networkx_edges(friends, layout, ax=axes, edge_color="#dddddd")
    nx.draw_networkx_nodes(
        friends,
        layout,
        ax=axes,
        node_size=[8 + 900 * share[who] for who in friends],
        node_color=["#e07b39" if who == START else "#1f5fa8" for who in friends],
        edgecolors=["#222222" if who in circle else "none" for who in friends],
    )
    axes.set_title(f"alpha {alpha}", fontsize=10)
    axes.axis("off")

# %% [markdown]
# On the left the noise protects no one: the member who began the rumour is blamed. In the middle the committee mostly
# names someone in the right circle, and more often its best-known member than the one who began the rumour. A hunter is
# right about twice as often as the committee, and about three times in ten over all members: the person is not named,
# but not safe either. On the right, blame falls on well-connected members, and the committee learns little.
#
# ## What it cost
#
# With the promise in the middle, a single report reveals hardly anything: its noise, in the table, is about as large as
# the true report of the member who began the rumour. Only all 34 reports together are informative. The last column of
# the table also shows the price: about a whole friendship, that promise is weak.
#
# ## What cannot be concluded
#
# - Blame is no proof. A committee that takes the name for a verdict is wrong most of the time.
# - Nor is the person safe. A promise about half a friendship leaves a hunter right about ten times as often as chance,
#   and one about a whole friendship about four times as often.
# - The promise compares members with their friends. It does not hide whether a rumour began at one end of the club or
#   at the other.
# - A second rumour from the same member, or a second report about the first, spends the promise again.
#
# **Read on:** [Physics](../docs/science/physics.md#a-network) for networks,
# [Privacy](../docs/science/privacy.md) for the definition of neighbours,
# [Point sources](../docs/science/point-sources.md) for the estimator.

# %% tags=["remove-cell"]
if "__file__" in globals():  # python examples/rumour_in_a_network.py [picture.png]
    import sys
    from pathlib import Path

    named = [Path(word) for word in sys.argv[1:] if word.endswith(".png")]
    picture = named[0] if named else Path(__file__).parents[1] / "out" / "rumour_in_a_network.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=150)
    print(f"\npicture: {picture}")
