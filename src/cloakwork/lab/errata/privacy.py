"""Mistakes about how much noise hides what."""

import math
from collections.abc import Iterator

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.lab.conditioning import condition_of, counterexamples, sensitivity_of
from cloakwork.lab.errata.erratum import Erratum, Part, Promise, share_of
from cloakwork.lab.experiment import stream
from cloakwork.lab.networks import block_model, heat_at_home
from cloakwork.lab.scenes import line
from cloakwork.privacy import Profile, Scope, largest_mu, paper_mu, sensitivity

PART = Part.PRIVACY
USUAL = ((1.0, 0.1), (4.0, 0.1), (10.0, 0.01), (1.0, 1e-6), (0.1, 1e-8))
DRAWS, QUICK_DRAWS = 200_000, 20_000


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """Only what floating point leaks is measured."""
    yield from _formula()
    yield _scope()
    yield from _lemmas()
    yield from _graphs()
    yield _floats(QUICK_DRAWS if quick else DRAWS, key)


def _formula() -> Iterator[Erratum]:
    """The formula sigma = 2 ln(1.25/delta) Delta / epsilon, both ways."""
    factors = {claim: largest_mu(*claim) / paper_mu(*claim) for claim in USUAL}
    for claim in (min(factors, key=factors.__getitem__), max(factors, key=factors.__getitem__)):
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


def _lemmas() -> Iterator[Erratum]:
    sources = {"Lemma 6": "Gilbert and McMillan, Lemma 6", "Lemma 7, converse": "Gilbert and McMillan, Lemma 7"}
    says = {
        "Lemma 6": "Delta >= alpha/kappa if ||M|| = 1",
        "Lemma 7, converse": "Delta <= 4 nu if the lesser singular values sum to nu",
        "Lemma 18, e^(-tau s_i)": "Delta <= sum_k e^(-tau s_i) |U_ik - U_jk|",
    }
    for check in counterexamples():
        if check.lemma in says:
            yield Erratum(
                PART,
                sources.get(check.lemma, "Gilbert and McMillan, Lemma 18"),
                says[check.lemma],
                f"Delta of {check.matrix}",
                Promise.AT_LEAST if check.at_least else Promise.AT_MOST,
                check.promised,
                check.true,
                "a condition is missing" if check.lemma != "Lemma 18, e^(-tau s_i)" else "the exponent is e^(-tau s_k)",
            )
    rho = 1e-3
    uneven = np.diag([1.0, rho, rho])
    yield Erratum(
        PART,
        "Gilbert and McMillan, Lemma 6, proof",
        "Delta/alpha = min over neighbours of ||M_i - M_j||",
        f"Delta of diag(1, {rho:g}, {rho:g}), kappa = {condition_of(uneven):.0f}",
        Promise.EQUAL,
        float(np.linalg.norm(np.diff(uneven, axis=1), axis=0).min()),
        sensitivity_of(uneven),
        "ill-conditioned, and hides nothing",
    )


def _graphs() -> Iterator[Erratum]:
    """Delta by the eigenvectors of L, which is the other way to the matrix exponential."""
    n, tau = 10, 0.5
    complete = np.ones((n, n)) - np.eye(n)
    star = np.zeros((n, n))
    star[0, 1:] = star[1:, 0] = 1.0
    other = (math.exp(-tau * n) - math.exp(-tau)) / (n - 1)
    cases = (
        ("complete graph", "2 e^(-tau n)", complete, 2 * math.exp(-tau * n)),
        ("star", "three terms", star, math.exp(-2 * tau * n) + other**2 + (other + math.exp(-tau)) ** 2),
    )
    for name, formula, weights, printed in cases:
        true = _squared(weights, tau)
        yield Erratum(
            PART,
            "Gilbert and McMillan, Table 2",
            f"{name}: Delta^2 = {formula}",
            f"Delta^2 of the {name} with {n} nodes, tau = {tau:g}",
            Promise.EQUAL,
            printed,
            true,
            _consequence(math.sqrt(printed / true)),
        )
    yield Erratum(
        PART,
        "Gilbert and McMillan, Figure 3",
        "5 % between communities and 0.1 % inside shows a community",
        "heat that is still in its community, less half",
        Promise.AT_LEAST,
        heat_at_home(block_model(500, 0.05, 0.001, 1), 2.0) - 0.5,
        heat_at_home(block_model(500, 0.001, 0.05, 1), 2.0) - 0.5,
        "the caption swaps the two",
    )


def _consequence(noise: float) -> str:
    """What noise does that is so many times what is needed, at (1, 1e-6)."""
    if noise >= 1:
        return f"{noise:.1f} times the noise that is needed"
    epsilon = Profile(largest_mu(1.0, 1e-6) / noise).epsilon(1e-6)
    return f"less privacy than claimed: epsilon {epsilon:.3f} for 1 at delta = 1e-6"


def _squared(weights: FloatArray, tau: float) -> float:
    values, vectors = np.linalg.eigh(np.diag(weights.sum(axis=0)) - weights)
    matrix = (vectors * np.exp(-tau * values)) @ vectors.T
    i, j = np.nonzero(weights)
    return float(((matrix[:, i] - matrix[:, j]) ** 2).sum(axis=0).max())


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
        "real noise is added to a real reading",
        f"share of float releases that prove x was not 1, at ({epsilon:g}, {delta:g})",
        Promise.AT_MOST,
        delta,
        share,
        "floating point leaks; integers do not",
        error,
    )
