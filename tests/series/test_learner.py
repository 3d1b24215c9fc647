"""Learners: the guarantee, the noise and the plays."""

import math
import pickle
from typing import Any

import cvxpy
import numpy as np
import pytest
from scipy import linalg, special

from cloakwork.errors import BudgetError, InputError, ReadingError
from cloakwork.privacy import largest_mu
from cloakwork.series import Experts, Learner, Moment, Stream

HOURS = 24


def loss(level: np.ndarray, people: np.ndarray) -> np.ndarray:
    return np.where(people / 6 > level, people / 6 - level, (level - people / 6) / 2)


def ventilation(contexts: int = HOURS) -> Experts:
    schedules = {
        f"{day:.2f} by day, {night} by night": [day if 8 <= hour % 24 < 18 else night for hour in range(contexts)]
        for day in np.linspace(0, 1, 7)
        for night in (0.0, 0.5)
    }
    levels = np.array(list(schedules.values())).T[:, :, None]
    return Experts(tuple(schedules), loss(levels, np.arange(7.0)))


def small(**options: object) -> Learner:
    experts = Experts(["low", "high"], [[0.0, 0.5, 1.0], [0.3, 0.2, 0.1]])
    return Learner(experts, 50, **{"epsilon": 1.0, "delta": 1e-6} | options)  # type: ignore[arg-type]


def test_no_visit_moves_the_release_by_more_than_the_reach_and_some_visit_does() -> None:
    experts = ventilation()
    moves = [
        math.dist(experts.steps[context, count], experts.steps[context, count + 1])
        for context in range(HOURS)
        for count in range(6)
    ]
    assert experts.reach - 1 < max(moves) <= experts.reach


def test_the_noise_has_the_least_variance_that_hides_every_visit() -> None:
    """Against the same problem as a semidefinite program: d' S^-1 d <= 1 says that [[S, d], [d', 1]] >= 0."""
    experts = ventilation()
    changes = np.moveaxis(np.diff(experts.table, axis=2), 1, 2).reshape(-1, 14)
    changes = np.unique((changes - changes.mean(axis=1, keepdims=True)).round(12), axis=0)
    hidden = experts.basis * experts.reach
    assert (((changes @ np.linalg.pinv(hidden).T) ** 2).sum(axis=1) <= 1 + 1e-4).all()
    program: Any = cvxpy
    values = program.Variable((14, 14), symmetric=True)
    fits = [program.bmat([[values, one[:, None]], [one[None, :], np.ones((1, 1))]]) >> 0 for one in changes]
    least = program.Problem(program.Minimize(program.trace(values)), fits).solve(solver=program.SCS, eps=1e-6)
    assert (hidden**2).sum() == pytest.approx(least, rel=0.01)


def test_the_totals_are_the_losses_within_their_noise() -> None:
    rng, experts = np.random.default_rng(3), ventilation()
    learner = Learner(experts, 100, epsilon=4.0, delta=1e-6)
    hours, counts = np.arange(100) % HOURS, rng.integers(0, 9, 100)
    for hour, people in zip(hours.tolist(), counts.tolist(), strict=True):
        learner.learn(people, hour)
    true = experts.table[hours, :, np.minimum(counts, 6)].sum(axis=0)
    error = learner.totals - (true - true.mean())
    assert (np.abs(error) < 6 * learner.standard_deviations + 1e-2).all()
    assert np.abs(error).max() > 0.01 * learner.standard_deviations.max()
    with pytest.raises(BudgetError):
        learner.learn(1)


def test_an_interrupted_round_ends_the_learning_and_not_the_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, push = Learner(ventilation(), 100, epsilon=1.0, delta=1e-6), Stream.push
    learner.learn(1)

    def interrupted(stream: Stream, value: float) -> Moment:
        if stream is learner.streams[3]:
            raise KeyboardInterrupt
        return push(stream, value)

    with monkeypatch.context() as patch:
        patch.setattr(Stream, "push", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.learn(1)
    with pytest.raises(BudgetError, match="interrupted"):
        learner.learn(1)
    assert 0 <= learner.choose() < len(learner.experts.names)


def test_the_noise_of_the_sums_is_that_of_the_claim() -> None:
    """The root of the ones filter, with columns of one norm, by hand at the exact mu; 0.8 and 1.2 times it fail."""
    learner = Learner(ventilation(), 300, epsilon=1.0, delta=1e-6)
    root = linalg.toeplitz(special.binom(-0.5, np.arange(300)) * (-1.0) ** np.arange(300), np.zeros(300))
    last_sum = np.linalg.solve((root / np.linalg.norm(root, axis=0)).T, np.ones(300))
    by_hand = np.linalg.norm(last_sum) / largest_mu(1.0, 1e-6) * np.sqrt((learner.experts.basis**2).sum(axis=1))
    sums = learner.streams[0].simulate(np.zeros((700, 300)), rng=np.random.default_rng(5)).values[:, -1].reshape(100, 7)
    ends = sums @ learner.experts.basis.T
    ratio = (ends.std(axis=0) / (by_hand * learner.experts.reach)).mean()
    assert 0.9 < ratio < 1.1


@pytest.mark.parametrize(
    ("names", "losses"),
    [
        (["a"], [[0.0, 1.0]]),
        (["a", "a"], [[0.0, 1.0], [1.0, 0.0]]),
        (["a", "b"], [[0.0, 1.1], [1.0, 0.0]]),
        (["a", "b"], [[0.0, math.nan], [1.0, 0.0]]),
        (["a", "b"], [[0.0, 0.5], [0.2, 0.7]]),
        (["a", "b"], [0.0, 1.0]),
    ],
)
def test_impossible_experts_are_refused(names: list[str], losses: list[Any]) -> None:
    with pytest.raises(InputError):
        Experts(names, losses)


@pytest.mark.parametrize("visits", [-1, 1.5, math.nan, True, "3"])
def test_a_count_that_is_none_is_refused_and_spends_nothing(visits: object) -> None:
    learner = small()
    with pytest.raises(ReadingError) as refused:
        learner.learn(visits)  # type: ignore[arg-type]
    assert learner.time == 0
    assert str(visits) not in str(refused.value)


def test_a_learner_cannot_be_copied() -> None:
    with pytest.raises(BudgetError):
        pickle.dumps(small())
