"""Communities of flipped contacts: laws by brute force, the privacy of a pair and of a person, plans, and refusals."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import optimize, sparse, stats

import cloakwork as cw
from cloakwork.contacts.community_plan import right_in_large_networks
from cloakwork.contacts.contact_pairs import random_positions
from cloakwork.errors import InputError

OFFICE = cw.Blocks([[0.05, 0.001], [0.001, 0.05]])


def flip_of(epsilon: float) -> cw.Flip:
    return cw.Flip(epsilon=epsilon, readings_per_window=1)


def agreement(first: Any, second: Any) -> float:
    """The share of people in the right one of two groups, whatever the names."""
    share = float(np.mean(np.asarray(first) == np.asarray(second)))
    return max(share, 1 - share)


def test_positions_have_the_law_of_independent_trials() -> None:
    rng, chance, draws = np.random.default_rng(1), 0.3, 4_000
    seen = np.zeros(16)
    for _ in range(draws):
        seen[sum(1 << int(k) for k in random_positions(4, chance, rng))] += 1
    law = [math.prod(chance if bit else 1 - chance for bit in bits) for bits in product((0, 1), repeat=4)]
    order = [sum(bit << k for k, bit in enumerate(bits)) for bits in product((0, 1), repeat=4)]
    assert stats.chisquare(seen[order], draws * np.array(law)).pvalue > 1e-4
    assert random_positions(0, 0.5, rng).size == random_positions(9, 0.0, rng).size == 0


def test_a_sample_has_the_stated_groups_and_densities() -> None:
    blocks = cw.Blocks([[0.2, 0.05], [0.05, 0.4]], shares=[3, 1])
    drawn = blocks.sample(2_000, rng=np.random.default_rng(2))
    sizes = np.bincount(drawn.labels)
    assert abs(sizes[0] - 1_500) < 5 * math.sqrt(2_000 * 0.75 * 0.25)
    for a, b, most in (
        (0, 0, sizes[0] * (sizes[0] - 1)),
        (0, 1, sizes[0] * sizes[1]),
        (1, 1, sizes[1] * (sizes[1] - 1)),
    ):
        ones = drawn.met[drawn.labels == a][:, drawn.labels == b].sum()
        assert abs(ones - most * blocks.matrix[a, b]) < 5 * math.sqrt(2 * most * blocks.matrix[a, b])
    assert abs(drawn.met - drawn.met.T).nnz == drawn.met.diagonal().sum() == 0


def test_reports_have_the_law_of_flipping_every_pair() -> None:
    """Among 100 times three people, of whom the first two met, the three pairs have eight outcomes."""
    flip, rng, draws = flip_of(1.0), np.random.default_rng(3), 3_000
    met = np.kron(np.eye(100, dtype=int), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    seen, first = np.zeros(8), np.arange(0, 300, 3)
    for _ in range(draws // 100):
        sent = cw.simulate_contacts(met, flip, rng=rng).toarray()
        codes = sent[first, first + 1] + 2 * sent[first, first + 2] + 4 * sent[first + 1, first + 2]
        seen += np.bincount(codes, minlength=8)
    yes, no = flip.truth, flip.other
    law = [math.prod(p if code >> k & 1 else 1 - p for k, p in enumerate((yes, no, no))) for code in range(8)]
    assert stats.chisquare(seen, draws * np.array(law)).pvalue > 1e-4


def largest_loss(first: tuple[int, ...], second: tuple[int, ...], flip: cw.Flip) -> float:
    """The largest log ratio of the probabilities of any reports, for two networks given by the bits of their pairs."""
    rates = (flip.other, flip.truth)
    losses = []
    for sent in product((0, 1), repeat=len(first)):
        logs = [
            sum(math.log(rates[bit] if one else 1 - rates[bit]) for bit, one in zip(bits, sent, strict=True))
            for bits in (first, second)
        ]
        losses.append(abs(logs[0] - logs[1]))
    return max(losses)


def test_a_pair_is_hidden_by_epsilon_and_a_person_by_as_many_as_their_pairs() -> None:
    """Four people have six pairs; the first three are those of person 0."""
    flip = flip_of(1.3)
    for bits in product((0, 1), repeat=6):
        other = (1 - bits[0], *bits[1:])
        assert largest_loss(bits, other, flip) == pytest.approx(1.3, rel=1e-9)
        assert largest_loss(bits, other, flip) <= 1.3 * (1 + 1e-12)
    assert largest_loss((1, 1, 1, 0, 1, 0), (0, 0, 0, 0, 1, 0), flip) == pytest.approx(3 * 1.3, rel=1e-9)


def test_the_privacy_of_a_person_agrees_with_dp_accounting() -> None:
    flip, contacts = flip_of(1.0), 13
    one = privacy_loss_distribution.from_randomized_response(2 * flip.other, 2, value_discretization_interval=1e-4)
    known = one.self_compose(contacts).get_epsilon_for_delta(1e-6)
    assert flip.compose(contacts, 1e-6) == pytest.approx(known, abs=2e-3)
    said = cw.plan_communities(n=500, blocks=OFFICE, epsilon=1.0).explain()
    assert f"All {contacts} contacts" in said
    assert f"epsilon {known:.3g}" in said


def test_the_plan_has_the_threshold_of_dense_reports_and_meets_the_sparse_one() -> None:
    plan = cw.plan_communities(n=500, blocks=OFFICE, epsilon=2.0)
    p, q = (flip_of(2.0).other + (1 - 2 * flip_of(2.0).other) * w for w in (0.05, 0.001))
    assert plan.snr == pytest.approx(500 * (p - q) ** 2 / (2 * (p * (1 - p) + q * (1 - q))))
    least = [cw.plan_communities(n=n, blocks=OFFICE, epsilon=2.0).min_epsilon for n in (100, 500, 2_000, 10_000)]
    assert np.round(least, 2).tolist() == [3.40, 1.69, 0.89, 0.41]
    at = cw.plan_communities(n=500, blocks=OFFICE, epsilon=least[1] + 1e-6)
    assert at.findable
    assert not cw.plan_communities(n=500, blocks=OFFICE, epsilon=least[1] - 1e-6).findable
    few = int(plan.min_n)
    assert [cw.plan_communities(n=n, blocks=OFFICE, epsilon=2.0).findable for n in (few - 1, few)] == [False, True]
    sparse_blocks = cw.Blocks(OFFICE.matrix * 1e-3)
    printed = 10**6 * (5e-5 - 1e-6) ** 2 / (2 * (5e-5 + 1e-6))
    assert cw.plan_communities(n=10**6, blocks=sparse_blocks, epsilon=40.0).snr == pytest.approx(printed, rel=1e-3)


def test_the_share_in_large_networks_is_that_of_the_best_estimate_of_signs() -> None:
    """For two equal groups, q = E tanh(snr q + sqrt(snr q) z) and Phi(sqrt(snr q)) (Deshpande, Abbe and Montanari)."""
    for epsilon in (0.97, 1.25, 1.75):
        plan = cw.plan_communities(n=2_000, blocks=OFFICE, epsilon=epsilon)
        z, weights = np.polynomial.hermite_e.hermegauss(80)
        known = 0.5
        for _ in range(2_000):
            known = float(np.tanh(plan.snr * known + math.sqrt(plan.snr * known) * z) @ weights / weights.sum())
        assert plan.right == pytest.approx(stats.norm.cdf(math.sqrt(plan.snr * known)), abs=0.007)


def test_the_share_of_a_small_network_is_not_that_of_a_large_one() -> None:
    """Among 100 people at epsilon 6, the limit of large networks is 90 %; about 83 % are put into their group."""
    plan = cw.plan_communities(n=100, blocks=OFFICE, epsilon=6.0)
    assert right_in_large_networks(plan) > 0.88
    right = []
    for seed in range(20):
        rng = np.random.default_rng([9, seed])
        drawn = OFFICE.sample(100, rng=rng)
        sent = cw.simulate_contacts(drawn.met, flip_of(6.0), rng=rng)
        right.append(agreement(cw.communities(sent, k=2, flip=flip_of(6.0), false_alarms=1.0).labels, drawn.labels))
        assert not cw.communities(sent, k=2, flip=flip_of(6.0)).findable
    assert plan.right == pytest.approx(np.mean(right), abs=3 * math.hypot(np.std(right) / math.sqrt(19), 0.01))
    assert 0 < plan.right_error <= 0.01
    assert f"{100 * plan.right:.0f} ± " in plan.explain()
    assert plan.right < 0.86
    assert plan.named < 0.1


def test_refined_groups_are_better_than_spectral_ones() -> None:
    """500 people at epsilon 3: signs of the leading eigenvector put 95 % right, and no method more than 97 %."""
    spectral, refined = [], []
    for seed in range(6):
        rng = np.random.default_rng([3, seed])
        drawn = OFFICE.sample(500, rng=rng)
        sent = cw.simulate_contacts(drawn.met, flip_of(3.0), rng=rng)
        refined.append(agreement(cw.communities(sent, k=2, flip=flip_of(3.0)).labels, drawn.labels))
        table = sent.toarray().astype(float)
        vector = np.linalg.eigh(table - table.mean() * (1 - np.eye(500)))[1][:, -1]
        spectral.append(agreement(vector > 0, drawn.labels))
    assert np.mean(refined) - np.mean(spectral) > 0.005
    assert np.mean(refined) == pytest.approx(0.966, abs=0.012)


def test_a_plan_for_several_groups_has_the_threshold_of_kesten_and_stigum() -> None:
    k, n, a, b = 10, 1_000, 9.0, 1.0
    matrix = np.full((k, k), b / n) + np.eye(k) * (a - b) / n
    plan = cw.plan_communities(n=n, blocks=cw.Blocks(matrix), epsilon=50.0)
    degree = (a + (k - 1) * b) / k
    assert plan.snr == pytest.approx(degree * ((a - b) / (a + (k - 1) * b)) ** 2, rel=0.01)
    assert plan.named == 0.01
    assert plan.min_epsilon == math.inf
    alike = cw.plan_communities(n=500, blocks=cw.Blocks([[0.1, 0.1], [0.1, 0.1]]), epsilon=1.0)
    assert alike.snr == 0.0
    assert alike.min_n == math.inf


def test_groups_are_found_where_the_plan_says_so_and_none_where_it_does_not() -> None:
    rng = np.random.default_rng(4)
    blocks = cw.Blocks(np.full((3, 3), 0.02) + 0.28 * np.eye(3), shares=[0.5, 0.3, 0.2])
    for epsilon, findable in ((3.0, True), (0.3, False)):
        drawn = blocks.sample(300, rng=rng)
        found = cw.communities(cw.simulate_contacts(drawn.met, flip_of(epsilon), rng=rng), k=3, flip=flip_of(epsilon))
        assert found.findable is findable is cw.plan_communities(n=300, blocks=blocks, epsilon=epsilon).findable
        if findable:
            table = np.zeros((3, 3))
            np.add.at(table, (found.labels, drawn.labels), 1)
            assert table.max(axis=1).sum() > 290
            np.testing.assert_allclose(np.sort(found.densities.diagonal()), 0.3, atol=0.06)
        else:
            assert not found.labels.any()
            assert found.status.startswith("No group stands out")


def test_groups_that_hide_in_another_direction_are_split() -> None:
    """Sales and service meet half as often as within, so only two of three directions stand out among 600 people."""
    office = np.full((4, 4), 0.01) + 0.11 * np.eye(4)
    office[1, 2] = office[2, 1] = 0.06
    rng, same = np.random.default_rng(1), np.zeros((4, 4))
    drawn = cw.Blocks(office, shares=[0.4, 0.25, 0.2, 0.15]).sample(600, rng=rng)
    found = cw.communities(cw.simulate_contacts(drawn.met, flip_of(3.0), rng=rng), k=4, flip=flip_of(3.0))
    np.add.at(same, (found.labels, drawn.labels), 1)
    assert len(found.snr) == 2
    assert same[optimize.linear_sum_assignment(-same)].sum() > 0.85 * 600


def test_known_groups_have_unbiased_densities_whose_limits_hold() -> None:
    rng, flip, trials = np.random.default_rng(5), flip_of(1.0), 60
    blocks = cw.Blocks([[0.3, 0.1], [0.1, 0.2]])
    inside, sums = 0, np.zeros((2, 2))
    for _ in range(trials):
        drawn = blocks.sample(60, rng=rng)
        sent = cw.simulate_contacts(drawn.met, flip, rng=rng)
        found = cw.communities(sent.toarray(), labels=drawn.labels, flip=flip)
        inside += int(((found.limits[..., 0] <= blocks.matrix) & (blocks.matrix <= found.limits[..., 1])).sum())
        sums += (found.densities - blocks.matrix) / found.errors
    assert inside >= 0.9 * 4 * trials
    assert (np.abs(sums / math.sqrt(trials)) < 4).all()
    assert found.findable
    assert found.status == "2 groups, as given."


def test_a_person_alone_has_any_density_and_a_network_of_all_or_none_has_no_groups() -> None:
    found = cw.communities([[0, 1], [1, 0]], labels=[0, 1], flip=flip_of(2.0))
    assert found.errors[0, 0] == math.inf
    assert found.limits[0, 0].tolist() == [0.0, 1.0]
    for n, k in ((2, 2), (5, 5), (9, 4)):
        cliques: Any = np.kron(np.eye(2, dtype=int), np.ones((n, n), int)) - np.eye(2 * n, dtype=int)
        assert cw.communities(cliques, k=k, flip=flip_of(9.0), false_alarms=1.0).labels.max() < k
    for entry in (0, 1):
        assert not cw.communities(entry * (1 - np.eye(9, dtype=int)), k=2, flip=flip_of(2.0)).findable


BAD_NETWORKS: list[Any] = [
    [[0]],
    [[0, 1]],
    [[0, 1], [0, 0]],
    [[1, 0], [0, 1]],
    [[0, 2], [2, 0]],
    [[0, math.nan], [math.nan, 0]],
    [["a", "b"], ["c", "d"]],
    "graph",
    sparse.csr_array(np.array([[0, 0.5], [0.5, 0]])),
]


@pytest.mark.parametrize("network", BAD_NETWORKS, ids=str)
def test_a_network_that_is_none_is_refused(network: Any) -> None:
    with pytest.raises(InputError):
        cw.communities(network, k=2, flip=flip_of(1.0))
    with pytest.raises(InputError):
        cw.simulate_contacts(network, flip_of(1.0), rng=np.random.default_rng(1))


@pytest.mark.parametrize(
    "matrix",
    [[[0.1, 0.2], [0.3, 0.1]], [[1.1]], [[-0.1]], [[math.nan]], [[0.1, 0.2]], [0.1], [], "x", [["a"]]],
    ids=str,
)
def test_blocks_that_are_no_probabilities_are_refused(matrix: Any) -> None:
    with pytest.raises(InputError):
        cw.Blocks(matrix)


@pytest.mark.parametrize("shares", [[1.0], [0, 1], [-1, 2], [math.nan, 1], [math.inf, 1]], ids=str)
def test_shares_that_are_none_are_refused(shares: Any) -> None:
    with pytest.raises(InputError):
        cw.Blocks(np.eye(2), shares=shares)


@pytest.mark.parametrize("met", [0.0, 1.0])
def test_reports_of_another_flip_are_refused(met: float) -> None:
    rng = np.random.default_rng(2)
    made = cw.simulate_contacts(cw.Blocks([[met]]).sample(100, rng=rng).met, flip_of(3.0), rng=rng)
    assert 0 <= cw.communities(made, labels=[0] * 100, flip=flip_of(3.0)).limits[0, 0, 0] <= 1
    with pytest.raises(InputError, match="give the flip that") as error:
        cw.communities(made, labels=[0] * 100, flip=flip_of(0.1))
    assert set(error.value.values) == {"share", "lie", "truth"}


def test_arguments_that_make_no_sense_are_refused_with_their_values() -> None:
    pair, flip, rng = np.array([[0, 1], [1, 0]]), flip_of(1.0), np.random.default_rng(1)
    with pytest.raises(InputError) as error:
        cw.communities(pair, k=3, flip=flip)
    assert error.value.values == {"k": 3, "n": 2}
    for options in ({}, {"k": 2, "labels": [0, 1]}, {"k": 1}, {"labels": [0, 2]}, {"labels": [0, -1]}, {"labels": [0]}):
        with pytest.raises(InputError):
            cw.communities(pair, flip=flip, **options)
    with pytest.raises(InputError):
        cw.simulate_contacts(pair, cw.Flip(epsilon=1.0, readings_per_window=1, values=3), rng=rng)
    with pytest.raises(InputError):
        OFFICE.sample(1, rng=rng)
    with pytest.raises(InputError):
        cw.Blocks([[0.5]]).sample(100_000, rng=rng)  # 2.5 billion contacts
    with pytest.raises(InputError):
        cw.plan_communities(n=1, blocks=OFFICE, epsilon=1.0)
    with pytest.raises(InputError) as error:
        cw.plan_communities(n=4, blocks=cw.Blocks(np.eye(5)), epsilon=1.0)
    assert error.value.values == {"k": 5, "n": 4}
    with pytest.raises(InputError):
        cw.block_distance(OFFICE, np.eye(2))  # type: ignore[arg-type]
