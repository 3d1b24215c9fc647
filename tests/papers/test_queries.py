"""How many queries tests need: pairs with exactly the stated parameters, and a search that finds a known size."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from cloakwork._checks import FloatArray
from cloakwork.auditing import KnownPair
from cloakwork.auditing.query_plan import largest_ratio
from cloakwork.auditing.testers import _identity
from papers.complexity import (
    DELTA,
    EPSILON,
    MAX_REPORTS,
    Cell,
    Setting,
    audit_pair,
    mistakes,
)
from papers.queries import (
    Contest,
    Sampler,
    brink,
    halves,
    known_contest,
    lonely,
    pure_contest,
    seldom,
    unknown_contest,
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


def test_far_pairs_of_every_contest_are_far_and_hard_pairs_bind() -> None:
    rng = np.random.default_rng(1)
    contest = unknown_contest(64, 1.0, 0.05, 0.1)
    high = [float(np.quantile(sample(2000.0, 400, rng), 2 / 3)) for sample in contest.private]
    low = [float(np.quantile(sample(2000.0, 400, rng), 1 / 3)) for sample in contest.far]
    assert high[0] > high[1]  # the brink is estimated too high, by what chance adds to each outcome on it
    assert low[0] < low[1]
    assert high[0] > 0.1
    assert low[0] == pytest.approx(0.15, abs=0.02)


def test_an_audit_finds_the_far_pair_and_not_the_private_one() -> None:
    setting = Setting(Cell.UNKNOWN, 16, 0.4)
    reports, found = audit_pair(setting.far, DELTA, 2, (1, 2))
    assert found == 1.0
    assert reports < 20_000
    assert audit_pair(setting.stated, DELTA, 1, (1, 3)) == (MAX_REPORTS, 0.0)
    assert setting.far.delta(EPSILON) == pytest.approx(DELTA + 0.4)
    assert not setting.far.is_private(EPSILON, DELTA)
    assert setting.stated.is_private(EPSILON, DELTA)


def test_printed_testers_fail_where_the_mended_ones_do_not() -> None:
    rng = np.random.default_rng(1)
    found = mistakes(30, rng)
    assert found.one_way_delta == pytest.approx(0.21)
    assert (found.one_way_printed, found.one_way_here) == (1.0, 0.0)
    assert found.honest_printed == 0.0
    assert found.honest_here > 0.8
