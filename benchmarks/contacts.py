"""Groups among many people: how long they take to find from a million reports, and how much memory."""

import resource
import time

import numpy as np
from rich.table import Table

from cloakwork.contacts import Blocks, communities, plan_communities, simulate_contacts
from cloakwork.privacy import Flip

GOAL_SECONDS = 60.0
PEOPLE, GROUPS, EPSILON = 100_000, 4, 9.2
WITHIN, BETWEEN = 3.7e-4, 1e-5  # ten contacts of a person


def run() -> tuple[Table, bool]:
    """The table, and whether the goal is met."""
    table = Table(title=f"{PEOPLE:,} people in {GROUPS} groups at epsilon {EPSILON:g}; goal: {GOAL_SECONDS:g} s")
    for name in ("step", "seconds", "what"):
        table.add_column(name, justify="right" if name == "seconds" else "left")
    rng, flip = np.random.default_rng(1), Flip(epsilon=EPSILON, readings_per_window=1)
    blocks = Blocks(np.full((GROUPS, GROUPS), BETWEEN) + (WITHIN - BETWEEN) * np.eye(GROUPS))
    plan = plan_communities(n=PEOPLE, blocks=blocks, epsilon=EPSILON)
    times = [time.perf_counter()]
    drawn = blocks.sample(PEOPLE, rng=rng)
    times.append(time.perf_counter())
    sent = simulate_contacts(drawn.met, flip, rng=rng)
    times.append(time.perf_counter())
    found = communities(sent, k=GROUPS, flip=flip)
    times.append(time.perf_counter())
    counts = np.zeros((GROUPS, GROUPS))
    np.add.at(counts, (found.labels, drawn.labels), 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    texts = (
        f"draw {drawn.met.nnz // 2:,} contacts",
        f"flip all pairs: {sent.nnz // 2:,} reports, of which {sent.multiply(drawn.met).nnz // 2:,} are true",
        f"{100 * counts.max(axis=1).sum() / PEOPLE:.1f} % right, expected {100 * plan.right:.1f} %; {found.status}",
    )
    for name, start, end, text in zip(("sample", "flip", "groups"), times, times[1:], texts, strict=False):
        table.add_row(name, f"{end - start:.1f}", text)
    table.add_row("all", f"{times[-1] - times[0]:.1f}", f"{memory:.0f} MB at most")
    return table, times[-1] - times[0] <= GOAL_SECONDS
