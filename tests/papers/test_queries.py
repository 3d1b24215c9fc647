"""How many queries tests need: pairs with exactly the stated parameters, and a search that finds a known size."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from cloakwork._checks import FloatArray
from cloakwork.auditing import KnownPair
from cloakwork.auditing.query_plan import largest_ratio
from cloakwork.auditing.testers import _identity
from papers.queries import (
    Contest,
    Sampler,
    brink,
    halves,
    known_contest,
    lonely,
    pure_contest,
    seldom,
)


@pytest.mark.parametrize("n", [4, 16, 17, 256])
def test_pairs_have_exactly_the_delta_that_they_are_for(n: int) -> None:
    assert halves(n, 1.0, 0.05).delta(1.0) == pytest.approx(0.05)
    assert halves(n, 1.0, 0.05, moved=0.1 / (1 + math.e)).delta(1.0) == pytest.approx(0.15)
    assert brink(n, 1.0, 0.05).deltas(1.0)[0] == pytest.approx(0.05)
    assert brink(n, 1.0, 0.05).delta(1.0) <= 0.05 + 1e-12
    assert lonely(n, 0.15).delta(1.0) == pytest.approx(0.15)


def normal(mean: float) -> Sampler:
    def sample(size: float, runs: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(rng.normal(mean, size**-0.5, runs))

    return sample


@pytest.mark.parametrize("gap", [0.3, 0.03])
def test_a_search_finds_the_size_that_tells_two_normal_means_apart(gap: float) -> None:
    """Two thirds of the one below what two thirds of the other are above: 2 z / sqrt(size) = gap."""
    wanted = (2 * float(norm.ppf(2 / 3)) / gap) ** 2
    contest = Contest((normal(0.0), normal(-1.0)), (normal(gap), normal(gap + 1)))
    found = np.array([contest.needed(4000, np.random.default_rng(k), start=1.0) for k in range(8)])
    assert np.exp(np.log(found).mean()) == pytest.approx(wanted, rel=0.1)


def sampled(sampler: Sampler, size: float, seed: int) -> float:
    return float(sampler(size, 1, np.random.default_rng(seed))[0])


def test_statistics_with_full_information_are_those_of_the_testers() -> None:
    contest = known_contest(8, 1.0, 0.05, 0.1)
    stated = halves(8, 1.0, 0.05)
    _, floor, _ = KnownPair(stated, 1.0, 0.05, 0.1).setting
    rng = np.random.default_rng(3)
    counts = [rng.poisson(500.0 * p, (1, 8))[0] for p in (stated.zero, stated.one)]
    wanted = max(_identity(x, q, 500.0, floor) for x, q in zip(counts, (stated.zero, stated.one), strict=True))
    assert sampled(contest.private[0], 500.0, 3) == pytest.approx(wanted)

    pure = seldom(8, 1.0, 1 / 32)
    rng = np.random.default_rng(4)
    tried = [rng.multinomial(500, p, size=1)[0] for p in (pure.zero, pure.one)]
    wanted = max(largest_ratio(x / 500, q) for x, q in zip(tried, (pure.zero, pure.one), strict=True))
    assert sampled(pure_contest(pure, 0.5).private[0], 500.0, 4) == pytest.approx(wanted)
