"""Learners: the trap of reused noise, ensembles of matrices, and bounds on regret."""

import math

import numpy as np
import pytest

from cloakwork.series import Experts, Learner
from papers.perturbations import (
    in_random_frames,
    laplace_ensemble,
    orthogonal_ensemble,
    regret_bound,
    reused_advantage,
)


def test_plays_with_reused_noise_reveal_a_changed_loss() -> None:
    """Against a simulation: the likelier neighbour, by a table of the plays that were seen."""
    single, together = reused_advantage(0.2, 40)
    assert single < math.tanh(0.1)
    assert together > 0.99
    rng, turns, seen = np.random.default_rng(2), 8, dict[bytes, list[int]]()
    for _ in range(6000):
        steps = np.concatenate([[0.5 - turns], np.ones(2 * turns), -np.ones(2 * turns)])
        changed = int(rng.integers(2))
        steps[2 * turns + 1] -= changed
        plays = np.cumsum(steps)[:-1] + (rng.gumbel() - rng.gumbel()) / 0.2 < 0
        seen.setdefault(plays.tobytes(), [0, 0])[changed] += 1
    simulated = sum(abs(a - b) for a, b in seen.values()) / 6000
    assert simulated == pytest.approx(reused_advantage(0.2, turns)[1], abs=0.06)


def test_ensembles_have_their_known_norms() -> None:
    rng = np.random.default_rng(3)
    values = laplace_ensemble(3, 200, 90, rng)
    assert np.abs(values).sum(axis=2).mean() == pytest.approx(6.0, rel=0.06)  # N (N + 1) / 2
    matrices = in_random_frames(values[:, -1], rng)
    np.testing.assert_allclose(np.linalg.eigvalsh(matrices)[:, ::-1], values[:, -1], atol=1e-9)
    flat = orthogonal_ensemble(4, 20_000, rng)
    a = np.outer([0.6, 0.8, 0, 0], [0.6, 0.8, 0, 0])
    weight = np.where(np.eye(4, dtype=bool), 1.0, 0.5)  # variances of the entries
    assert (a**2 / weight)[np.triu_indices(4)].sum() == pytest.approx(1.0)  # mu^2
    np.testing.assert_allclose(flat.var(axis=0), weight, rtol=0.06)


@pytest.mark.parametrize(("rate", "epsilon"), [(0.5, 8.0), (math.inf, 8.0), (math.inf, 0.4)])
def test_regret_stays_below_the_bound_even_if_the_leader_is_always_wrong(rate: float, epsilon: float) -> None:
    experts = Experts(["a", "b"], [[0.0, 1.0], [1.0, 0.0]])
    learner = Learner(experts, 400, epsilon=epsilon, delta=1e-6, rate=rate)
    counts = np.arange(400) % 2
    losses = experts.table[0, :, counts]
    shares = [learner.simulate(counts, rng=np.random.default_rng(seed)) for seed in range(20)]
    regret = np.mean([(share * losses).sum() for share in shares]) - 200
    assert regret <= min(regret_bound(learner, 200.0), regret_bound(learner))
    assert regret_bound(learner, 200.0) < (400 if math.isfinite(rate) else 401)
