"""Mistakes about how much noise hides what, and what noise is in a computer."""

import math
from collections.abc import Iterator

import numpy as np

from cloakwork.physics import Graph
from cloakwork.privacy import Profile, Scope, largest_mu, paper_mu, sensitivity
from papers.conditioning import condition_of, sensitivity_of
from papers.errata.erratum import Erratum, Part, Promise, share_of
from papers.experiment import stream
from papers.scenes import line

PART = Part.PRIVACY
USUAL = ((1.0, 0.1), (4.0, 0.1), (10.0, 0.01), (1.0, 1e-6), (0.1, 1e-8))
DRAWS, QUICK_DRAWS = 200_000, 20_000


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """Only what floating point leaks is measured."""
    yield from _formula()
    yield _scope()
    yield _least()
    yield _edge()
    yield _floats(QUICK_DRAWS if quick else DRAWS, key)


def _formula() -> Iterator[Erratum]:
    """The formula sigma = 2 ln(1.25/delta) Delta / epsilon, both ways."""
    for claim in USUAL:
        yield Erratum(
            PART,
            "Gilbert and McMillan, Lemma 4",
            "sigma = 2 ln(1.25/delta) Delta/epsilon",
            f"sigma/Delta that ({claim[0]:g}, {claim[1]:g}) needs",
            Promise.AT_MOST,
            1 / paper_mu(*claim),
            1 / largest_mu(*claim),
            "noise for nothing",
        )
    for epsilon, delta in ((8.0, 0.5), (25.0, 0.2), (50.0, 0.1), (150.0, 0.01)):
        yield Erratum(
            PART,
            "Gilbert and McMillan, Lemma 4",
            "private for all epsilon > 0",
            f"delta at epsilon = {epsilon:g}",
            Promise.AT_MOST,
            delta,
            Profile(epsilon / (2 * math.log(1.25 / delta))).delta(epsilon),
            f"less privacy than claimed; from epsilon = {_breaks_at(delta):.1f} on",
        )


def _breaks_at(delta: float) -> float:
    """The epsilon above which the formula gives more than delta."""
    low, high, scale = 1.0, 1000.0, 2 * math.log(1.25 / delta)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if Profile(middle / scale).delta(middle) <= delta else (low, middle)
    return low


def _scope() -> Erratum:
    return Erratum(
        PART,
        "Gilbert and McMillan, section 1.3",
        "privacy is asked of each reading alone, noise is made for all together",
        "Delta of one reading on the line",
        Promise.AT_MOST,
        sensitivity(line(), alpha=0.01),
        sensitivity(line(), alpha=0.01, scope=Scope.SENSOR),
        "two claims in one; both are useful, and have to be told apart",
    )


def _least() -> Erratum:
    rho = 1e-3
    uneven = np.diag([1.0, rho, rho])
    return Erratum(
        PART,
        "Gilbert and McMillan, Lemma 6, proof",
        "Delta/alpha = min over neighbours of ||M_i - M_j||",
        f"Delta of diag(1, {rho:g}, {rho:g}), kappa = {condition_of(uneven):.0f}",
        Promise.EQUAL,
        float(np.linalg.norm(np.diff(uneven, axis=1), axis=0).min()),
        sensitivity_of(uneven),
        "ill-conditioned, and hides nothing",
    )


def _edge() -> Erratum:
    """Lemma 18 with its exponent set right, on a graph where one edge says nothing about another."""
    n, tau = 10, 0.5
    weights = np.ones((n, n)) - np.eye(n)
    weights[-1, 1:] = weights[1:, -1] = 0.0  # all know each other but for the last, whom the first alone knows
    values, vectors = np.linalg.eigh(np.diag(weights.sum(axis=0)) - weights)
    i, j = np.nonzero(np.triu(weights))
    bounds = np.abs(vectors[i] - vectors[j])[:, 1:] @ np.exp(-tau * values[1:])
    return Erratum(
        PART,
        "Gilbert and McMillan, Lemma 18",
        "Delta <= sum_k e^(-tau s) |U_ik - U_jk|, with no word on i and j",
        f"Delta of {n - 1} who all know each other and one whom the first alone knows, i and j the least edge",
        Promise.AT_MOST,
        float(bounds.min()),
        Graph(weights, tau=tau).joint_slope().value,
        f"a max over edges is missing: with it the bound is {float(bounds.max()):.4g}",
    )


def _floats(draws: int, key: tuple[int, ...]) -> Erratum:
    """Releases 0 + z in floating point that no z could have made from 1.

    Whatever the generator, fl(1 + z) is y only for the floats z next to y - 1.
    """
    epsilon, delta = 1.0, 0.1
    y = stream(*key, 0).normal(0.0, 1 / largest_mu(epsilon, delta), draws)
    near = y - 1.0
    candidates = (near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf))
    possible = np.any([1.0 + z == y for z in candidates], axis=0)
    share, error = share_of(int((~possible).sum()), draws)
    return Erratum(
        PART,
        "Gilbert and McMillan, Proposition 5",
        "readings and noise are real numbers",
        f"share of float releases that prove x was not 1, at ({epsilon:g}, {delta:g})",
        Promise.AT_MOST,
        delta,
        share,
        "floating point leaks; integers do not",
        error,
        assumed=True,
        share=True,
    )
