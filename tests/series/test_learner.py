"""Learners: the claim, the noise, the bound on the regret, and what a crash costs."""

import math
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import pytest
from scipy import special, stats

from cloakwork.errors import BudgetError, InputError, ReadingError
from cloakwork.privacy import largest_mu
from cloakwork.series import Experts, Learner, Moment, RunningSum, Stream
from cloakwork.series.learner import largest_noise
from cloakwork.series.release_noise import GaussianNoise

HOURS = 24


def loss(level: np.ndarray, people: np.ndarray) -> np.ndarray:
    return np.where(people / 6 > level, people / 6 - level, (level - people / 6) / 2)


def ventilation(contexts: int = HOURS) -> Experts:
    schedules = {
        f"{day:.2f} by day, {night} by night": [day if 8 <= hour % 24 < 18 else night for hour in range(contexts)]
        for day in np.linspace(0, 1, 7)
        for night in (0.0, 0.5)
    }
    return Experts.of_schedules(schedules, loss, most=6)


def small(**options: object) -> Learner:
    experts = Experts(["low", "high"], [[0.0, 0.5, 1.0], [0.3, 0.2, 0.1]])
    return Learner(experts, 50, **{"epsilon": 1.0, "delta": 1e-6} | options)  # type: ignore[arg-type]


def test_losses_follow_from_the_release() -> None:
    experts = ventilation()
    effect = np.moveaxis(experts.table - experts.table[:, :, :1], 1, 2)
    effect = effect - effect.mean(axis=2, keepdims=True)
    assert np.abs(experts.steps @ experts.basis.T - effect).max() < 1e-4


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


def test_more_hours_with_the_same_levels_cost_nothing() -> None:
    day, week = ventilation(HOURS), ventilation(7 * HOURS)
    np.testing.assert_allclose(day.basis, week.basis, atol=1e-9)


def test_the_noise_of_the_sums_is_that_of_the_claim() -> None:
    """The root of the ones filter by hand, at the exact mu; 0.8 and 1.2 times it would fail."""
    learner = Learner(ventilation(), 300, epsilon=1.0, delta=1e-6)
    root = special.binom(-0.5, np.arange(300)) * (-1.0) ** np.arange(300)
    by_hand = (root**2).sum() / largest_mu(1.0, 1e-6) * np.sqrt((learner.experts.basis**2).sum(axis=1))
    sums = learner.stream.simulate(np.zeros((700, 300)), rng=np.random.default_rng(5)).values[:, -1].reshape(100, 7)
    ends = sums @ learner.experts.basis.T
    ratio = (ends.std(axis=0) / (by_hand * learner.experts.reach)).mean()
    assert 0.9 < ratio < 1.1


def test_streams_that_share_a_claim_count_all_their_draws() -> None:
    alone, together = (Stream(RunningSum(), 50, epsilon=1.0, delta=1e-6, together=number).noise for number in (1, 1000))
    assert isinstance(alone, GaussianNoise)
    assert isinstance(together, GaussianNoise)
    assert together.draws == 1000 * alone.draws


def test_plays_are_hedge_on_the_noisy_totals() -> None:
    learner = small(rate=0.7)
    learner.learn_past([2] * 3 + [0] * 5)
    totals = learner.totals
    shares = special.softmax(-0.7 * totals)
    gumbel = np.random.default_rng(1).gumbel(size=(40_000, 2))
    assert ((totals - gumbel / 0.7).argmin(axis=1) == 0).mean() == pytest.approx(shares[0], abs=0.01)


@pytest.mark.parametrize(("rate", "epsilon"), [(0.5, 8.0), (math.inf, 8.0), (math.inf, 0.4)])
def test_regret_stays_below_the_bound_even_if_the_leader_is_always_wrong(rate: float, epsilon: float) -> None:
    experts = Experts(["a", "b"], [[0.0, 1.0], [1.0, 0.0]])
    learner = Learner(experts, 400, epsilon=epsilon, delta=1e-6, rate=rate)
    counts = np.arange(400) % 2
    losses = experts.table[0, :, counts]
    shares = [learner.simulate(counts, rng=np.random.default_rng(seed)) for seed in range(20)]
    regret = np.mean([(share * losses).sum() for share in shares]) - 200
    assert regret <= min(learner.regret_bound(200), learner.regret_bound())
    assert learner.regret_bound(200) < (400 if math.isfinite(rate) else 401)


def test_the_noise_that_hides_visits_bounds_the_regret_of_the_leader() -> None:
    """By hand: a round moves the totals by a vector that the noise of earlier rounds hides; the first has none."""
    experts = ventilation()
    losses = np.moveaxis(experts.table, 1, 2).reshape(-1, 14)
    moves = (losses - losses.mean(axis=1, keepdims=True)) @ np.linalg.pinv(experts.basis).T
    farthest, bounds = np.sqrt((moves**2).sum(axis=1)).max(), []
    for epsilon in (0.05, 0.2, 1.0):
        learner = Learner(experts, 2160, epsilon=epsilon, delta=1e-6, rate=math.inf)
        deviations = np.sqrt(learner.stream.variances)
        plays = 1 + (2 * stats.norm.cdf(farthest / (2 * deviations[:-1])) - 1).sum()
        noise = largest_noise(deviations[-1] * np.sqrt((experts.basis**2).sum(axis=1)))
        bounds.append(learner.regret_bound())
        assert bounds[-1] == pytest.approx(plays + noise, abs=0.1)
        assert bounds[-1] >= plays + noise
    assert bounds[1] < bounds[0] < bounds[2] < 210


def test_the_expected_maximum_is_bounded() -> None:
    learner = Learner(ventilation(), 100, epsilon=1.0, delta=1e-6)
    noise = np.random.default_rng(2).standard_normal((20_000, 7)) @ learner.experts.basis.T
    bound = largest_noise(np.sqrt((learner.experts.basis**2).sum(axis=1)))
    assert noise.max(axis=1).mean() < bound < 2 * noise.max(axis=1).mean()


def test_past_rounds_find_the_best_schedule() -> None:
    rng, experts = np.random.default_rng(3), ventilation()
    hours = np.arange(720) % 24
    counts = np.minimum(rng.poisson(np.where((hours >= 8) & (hours < 18), 5.0, 0.1)), 6)
    learner = Learner(experts, 720, epsilon=4.0, delta=1e-6)
    learner.learn_past(counts, hours)
    totals = experts.table[hours, :, counts].sum(axis=0)
    for one in learner.ranking():
        true = totals[experts.names.index(one.expert)] - totals[experts.names.index(learner.ranking()[0].expert)]
        assert abs(one.excess - true) < 6 * one.standard_deviation + 1e-3
    with pytest.raises(BudgetError):
        learner.learn(1)
    assert learner.choose(9).expert in experts.names


def test_nobody_counts_more_often_than_the_contribution(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, push, seen = small(persons=True, contribution=2), Stream.push, list[float]()

    def watched(stream: Stream, value: float) -> Moment:
        seen.append(value)
        return push(stream, value)

    monkeypatch.setattr(Stream, "push", watched)
    for labels in (["ann"], ["ann", "bob"], ["ann"], ["bob"], ["bob"]):
        learner.learn(labels)
    one, two = (int(learner.experts.steps[0, number, 0]) for number in (1, 2))
    assert seen == [one, two, 0, one, 0]
    with pytest.raises(ReadingError):
        learner.learn(3)


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


def test_an_expert_without_a_setting_is_named() -> None:
    with pytest.raises(InputError) as refused:
        Experts.of_schedules({"low": [0.1], "broken": [math.nan]}, loss, most=6)
    assert refused.value.expert == "broken"


@pytest.mark.parametrize("visits", [-1, 1.5, math.nan, True, "3"])
def test_a_count_that_is_none_is_refused_and_spends_nothing(visits: object) -> None:
    learner = small()
    with pytest.raises(ReadingError) as refused:
        learner.learn(visits)  # type: ignore[arg-type]
    assert learner.time == 0
    assert str(visits) not in str(refused.value)


@pytest.mark.parametrize(("counts", "contexts"), [([1, -1], None), ([], None), ([1], [9]), ([1], [-1]), ([1.5], None)])
def test_rounds_that_are_none_are_refused_and_spend_nothing(counts: list[float], contexts: list[int] | None) -> None:
    learner = small()
    with pytest.raises(InputError):
        learner.learn_past(counts, contexts)
    with pytest.raises(InputError):
        learner.simulate(counts, contexts, rng=np.random.default_rng(1))
    with pytest.raises(InputError):
        learner.regret_bound(math.nan)
    assert learner.time == 0


def test_a_learner_is_neither_copied_nor_used_by_two() -> None:
    with pytest.raises(BudgetError):
        pickle.dumps(small())


def interrupted(_: Stream, __: float) -> None:
    raise KeyboardInterrupt


def _learn_until_killed(path: Path, writer: int) -> None:
    learner = small(state=path)
    os.write(writer, b"%d\n" % learner.time)
    while True:
        learner.learn(1)
        os.write(writer, b"%d\n" % learner.time)


class TestState:
    def test_a_round_that_was_interrupted_is_lost_and_not_learned_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "learner.json"
        learner = small(state=path)
        learner.learn(2)
        published = learner.ranking()
        with monkeypatch.context() as patch:
            patch.setattr(Stream, "push", interrupted)
            with pytest.raises(KeyboardInterrupt):
                learner.learn(1)
        learner.close()
        again = small(state=path)
        assert (again.time, again.lost) == (2, 1)
        assert again.ranking() == published
        again.learn(0)
        assert again.time == 3
        again.close()

    def test_a_killed_process_never_gets_a_round_twice(self, tmp_path: Path) -> None:
        """Every number that left the process belongs to a round that the state has used up."""
        path = tmp_path / "learner.json"
        small().learn(1)  # compiles what the child needs
        started = []
        for stop_after in (2, 5):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                _learn_until_killed(path, writer)
            os.close(writer)
            with os.fdopen(reader) as lines:
                seen = [int(lines.readline()) for _ in range(stop_after)]
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            started.append(seen[0])
            learner = small(state=path)
            assert learner.time >= seen[-1]
            assert learner.lost <= len(started)
            learner.close()
        assert started[1] >= 1

    def test_noise_adds_up_over_restarts_and_the_bound_says_so(self, tmp_path: Path) -> None:
        bounds = []
        for _ in range(3):
            learner = small(state=tmp_path / "learner.json", epsilon=4.0)
            learner.learn(1)
            bounds.append(learner.regret_bound())
            learner.close()
        assert bounds == sorted(bounds)
        assert bounds[2] > bounds[0]

    def test_a_damaged_or_foreign_state_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "learner.json"
        learner = small(state=path)
        learner.learn(1)
        learner.close()
        with pytest.raises(InputError):
            small(state=path, epsilon=2.0)
        path.write_bytes(path.read_bytes().replace(b'"spent": 1', b'"spent": 0'))
        with pytest.raises(InputError):
            small(state=path)

    def test_two_processes_cannot_share_a_state(self, tmp_path: Path) -> None:
        first = small(state=tmp_path / "learner.json")
        with pytest.raises(BudgetError):
            small(state=tmp_path / "learner.json")
        first.close()
        small(state=tmp_path / "learner.json").close()


def test_whole_plays_are_as_private_as_the_claim() -> None:
    """The first release against its neighbour: the advantage of the best test stays within that of the claim."""
    learner = Learner(ventilation(), 200, epsilon=1.0, delta=1e-6)
    stream = learner.stream
    weights = stream.weights.astype(float)
    shift = np.linalg.norm(weights) * learner.experts.reach
    mu = shift / math.sqrt(stream.noise.variance)
    claimed = largest_mu(1.0, 1e-6)
    assert mu <= claimed
    assert mu > 0.99 * claimed
    assert 2 * stats.norm.cdf(mu / 2) - 1 <= (math.e - 1 + 2e-6) / (math.e + 1)
