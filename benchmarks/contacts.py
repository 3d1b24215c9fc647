"""Groups among many people: how long they take to find, and how right they are beside other methods."""

import math
import time

import numpy as np
from rich.table import Table
from scipy.sparse.linalg import eigsh

from benchmarks.memory import peak_bytes
from cloakwork._checks import FloatArray
from cloakwork.contacts import Blocks, communities, plan_communities, simulate_contacts
from cloakwork.privacy import Flip

GOAL_SECONDS = 60.0
PEOPLE, GROUPS, EPSILON = 100_000, 4, 9.2
WITHIN, BETWEEN = 3.7e-4, 1e-5  # ten contacts of a person
OFFICE = Blocks([[0.05, 0.001], [0.001, 0.05]])
SMALL, NETWORKS, KNOWN_STEPS = 500, {3.0: 16, 2.0: 60, 1.0: 40}, 40


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
    memory = peak_bytes() / 2**20
    texts = (
        f"draw {drawn.met.nnz // 2:,} contacts",
        f"flip all pairs: {sent.nnz // 2:,} reports, of which {sent.multiply(drawn.met).nnz // 2:,} are true",
        f"{100 * counts.max(axis=1).sum() / PEOPLE:.1f} % right, expected {100 * plan.right:.1f} %; {found.status}",
    )
    for name, start, end, text in zip(("sample", "flip", "groups"), times, times[1:], texts, strict=False):
        table.add_row(name, f"{end - start:.1f}", text)
    table.add_row("all", f"{times[-1] - times[0]:.1f}", f"{memory:.0f} MB at most")
    for small_epsilon, networks in NETWORKS.items():
        start = time.perf_counter()
        right = 100 * np.array([_right(small_epsilon, seed) for seed in range(networks)])
        means, errors = right.mean(axis=0), right.std(axis=0, ddof=1) / math.sqrt(networks)
        text = ", ".join(
            f"{name} {mean:.1f} ± {error:.1f} %"
            for name, mean, error in zip(
                ("ours", "signs of an eigenvector", "known densities"), means, errors, strict=True
            )
        )
        seconds = f"{time.perf_counter() - start:.1f}"
        table.add_row(f"{SMALL} people, epsilon {small_epsilon:g}", seconds, f"right in {networks} networks: {text}")
    return table, times[-1] - times[0] <= GOAL_SECONDS


def _right(epsilon: float, seed: int) -> list[float]:
    """The share of people in the right one of two equal groups: ours, by signs alone, and if densities are known."""
    rng, flip = np.random.default_rng([7, int(10 * epsilon), seed]), Flip(epsilon=epsilon, readings_per_window=1)
    truth = np.repeat([0, 1], SMALL // 2)
    met = np.triu(rng.random((SMALL, SMALL)) < OFFICE.matrix[np.ix_(truth, truth)], 1)
    sent = simulate_contacts((met | met.T).astype(int), flip, rng=rng)
    reports = sent.toarray().astype(np.float64)
    centred = reports - reports.sum() / (SMALL * (SMALL - 1))
    np.fill_diagonal(centred, 0.0)
    signs = np.sign(eigsh(centred, k=1, which="LA", v0=np.ones(SMALL))[1][:, 0])
    found = (communities(sent, k=2, flip=flip, false_alarms=1.0).labels, signs > 0, _believed(reports, flip, signs) > 0)
    same = [float((labels == truth).mean()) for labels in found]
    return [max(share, 1 - share) for share in same]


def _believed(reports: FloatArray, flip: Flip, signs: FloatArray) -> FloatArray:
    """Beliefs about each person's group, from -1 to 1, by belief propagation with the true densities.

    In dense networks its messages reduce to one belief for each person, less what a person told the others (Onsager).
    """
    within, between = OFFICE.reported(flip.other).matrix[0]
    weights = np.where(reports > 0, math.log(within / between), math.log((1 - within) / (1 - between))) / 2
    np.fill_diagonal(weights, 0.0)
    beliefs, last = 0.1 * signs, np.zeros(len(signs))
    for _ in range(KNOWN_STEPS):
        beliefs, last = np.tanh(weights @ beliefs - (weights**2 @ (1 - beliefs**2)) * last), beliefs
    return np.asarray(beliefs)
