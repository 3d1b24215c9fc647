"""Who started a rumour? Every member of a club reports how often they heard it, with noise of their own.

Run: python examples/rumour_in_a_network.py
"""

from collections import Counter

import networkx as nx
import numpy as np

import cloakwork as cw

club = nx.karate_club_graph()
for _, _, edge in club.edges(data=True):
    edge["weight"] = 1.0
network = cw.Graph(club, tau=0.5)
print(network.describe(), "\n")

cloak = cw.Cloak(network, epsilon=4.0, delta=0.01, alpha=0.2)
start = 5
frames = cloak.simulate(np.tile(network.apply(cw.sources(network, [start])), (300, 1)), rng=np.random.default_rng(2))
rumour = cw.PointSources(strength=1.0, most=1, least=1)  # one member started it
blamed = Counter(sources[0].at for sources in cw.recover(frames, cloak, estimator=rumour).sources)
near = set(nx.single_source_shortest_path_length(club, start, cutoff=1))
print(f"the rumour starts at member {start}; over 300 trials the analyst blames (member: times)")
print(", ".join(f"{who}: {times}" for who, times in blamed.most_common(8)))
print(f"{sum(times for who, times in blamed.items() if who in near) / 3:.0f} % blame {start} or a friend of theirs")
