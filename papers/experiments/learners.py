"""Learning with private counts, with perturbed leaders, and of leading directions: regret and what it reveals."""

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray, IntArray
from cloakwork.privacy import largest_mu
from cloakwork.series import Experts, Learner
from papers import perturbations as play
from papers.drawing import FAINT, INK, SERIES, curve, finish, legend_below
from papers.experiment import Experiment, Run, stream
from papers.perturbations import FIRST, SECOND, regret_bound
from papers.result import Agreement, Claim, Finding, Goal
from papers.rows import Mean, Row, pick, picked

DELTA, MOST, HOURS = 1e-6, 6, 90 * 24
LIMITS = {0.5: 40.0, 1.0: 26.0, 4.0: 6.0}  # of the regret, by epsilon
TRIALS, QUICK_TRIALS = 120, 6
ROUNDS, EXPERTS, REUSED, TURNS = 4000, 10, 0.2, 40


class Learners(Finding):
    """Regret of learners, private and not, and what reused noise reveals."""

    size = (12.0, 4.6)

    def claims(self) -> tuple[Claim, ...]:
        worst = max(self.perturbed, key=lambda one: one.regret.value / one.bound)
        last, gaussian = self.ensembles[-1], pick(self.perturbed, game=SECOND, noise="Gaussian")
        order = [one.regret.value / pick(self.games, game=one.game).order for one in self.perturbed]
        growth, root, allowed = _growth(), math.sqrt(EXPERTS), math.tanh(REUSED / 2)
        rate = min(1.0, EXPERTS**0.25 * math.sqrt(root * math.log(ROUNDS) / pick(self.games, game=SECOND).best))
        printed = (
            2 * rate * pick(self.games, game=SECOND).best + 10 / rate * root**2 * math.log(4 * ROUNDS * root) + 0.5
        )
        rows = (
            (
                "Lemma 12.1: Regret <= sum <x_t - x_{t+1}, l_t> for the leader, x_{t+1} = argmin L_{t-1}",
                f"{self.lemma[1]:.1f} against at most {self.lemma[0]:.1f} over 200 rounds; it holds for argmin L_t",
                Agreement.of(self.lemma[1] <= self.lemma[0]),
            ),
            (
                "Theorem 12.3: regret <= 2 eps L* + 3 E max Z",
                f"at most {100 * worst.regret.value / worst.bound:.0f} % of it ({worst.noise}, {worst.game})",
                _loose(worst.regret.value - 2 * worst.regret.error <= worst.bound),
            ),
            (
                "Theorem 12.4: Gaussian noise has regret of order N^(1/4) sqrt(R L* log T) + sqrt(N) R log T",
                f"{gaussian.regret:.1f}; with its constants the bound is {printed:.0f}",
                _loose(gaussian.regret.value <= printed),
            ),
            (
                "Definition 12.2: one-step privacy with reused noise",
                f"one play reveals a changed loss with advantage {self.single:.3f}, of {allowed:.2f} allowed, "
                f"and {4 * TURNS} plays together with {self.together:.3f}",
                Agreement.NARROW if self.together > allowed else Agreement.AGREES,
            ),
            (
                "Lemma 12.6: E lambda_max <= log N + 1",
                f"{last.largest.value:.1f} at N = {last.size} where {math.log(last.size) + 1:.1f} is printed",
                Agreement.of(last.largest.value <= math.log(last.size) + 1),
            ),
            (
                "Theorem 13.1: all listed noises have regret of order sqrt(L* log N) + log N",
                f"{min(order):.1f} to {max(order):.1f} times that; a Weibull noise has a bounded hazard rate only with "
                "shape 1, which is exponential, or cut off at 1",
                Agreement.of(max(order) < 10),
            ),
            (
                "Lemma 13.7: E max is of order (log N) / eps for all listed noises",
                "not for Weibull noise: from 10 to a million experts E max eps / ln N changes by a factor of "
                + ", ".join(f"{value:.2f} ({name})" for name, value in growth.items()),
                Agreement.of(max(growth.values()) < 1.6),
            ),
        )
        return tuple(Claim(text, f"McMillan, {text.split(':')[0]}", found, verdict) for text, found, verdict in rows)

    def goals(self) -> tuple[Goal, ...]:
        rows = [one for one in self.private if one.epsilon in LIMITS]
        return tuple(
            Goal(
                f"regret of the learner at epsilon {one.epsilon:g} at most {LIMITS[one.epsilon]:g}",
                f"{one.learner:.1f}",
                one.learner.value + 2 * one.learner.error <= LIMITS[one.epsilon],
            )
            for one in rows
        )

    def text(self) -> str:
        sure = self.private[-1]
        return (
            "Left: what privacy costs a ventilation that learns. Regret is the loss of 90 days beyond that of the best "
            f"of 14 schedules, {self.best.value:.0f}. The [learner](learning.md) plays Hedge on private running sums; "
            f"noise on each hour costs far more. At epsilon {sure.epsilon:g} it has {sure.learner:.1f}; Hedge with "
            f"its usual rate and true counts has {self.hedge:.1f}."
        )

    def draw(self, figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        x = [one.epsilon for one in self.private]
        for name, number in (("learner", 0), ("leader", 2), ("hourly", 1)):
            curve(left, x, [getattr(one, name) for one in self.private], number, marker="o", label=name)
        left.plot(x, [one.bound for one in self.private], ":", color=INK, label="bound")
        left.axhline(self.hedge.value, color=FAINT, label="Hedge, not private")
        finish(left, "Regret of 90 days", "epsilon", "loss beyond the best", ticks=x, ylim=(0, 260))
        _draw_noises(middle, self.perturbed)
        sizes = [one.size for one in self.ensembles]
        for name, number in (("largest", 1), ("gaussian", 0)):
            means = [getattr(one, name).value for one in self.ensembles]
            curve(right, sizes, means, number, marker="o", label=name)
        right.plot(sizes, np.log(sizes) + 1, "--", color=INK, label="Lemma 12.6")
        finish(right, "E lambda_max of the noise", "N", legend=10, ylim=(0, None))
        legend_below(figure, [left])


def _draw_noises(axes: Any, perturbed: tuple[Row, ...]) -> None:
    names = list(dict.fromkeys(one.noise for one in perturbed))
    for game, color, aside in ((FIRST, SERIES[3], -0.12), (SECOND, SERIES[4], 0.12)):
        rows = list(picked(perturbed, game=game))
        places = [names.index(one.noise) + aside for one in rows]
        bars = [2 * one.regret.error for one in rows]
        axes.errorbar([one.regret.value for one in rows], places, xerr=bars, fmt="o", color=color, label=game)
        axes.plot([one.bound for one in rows], places, "|", color=color, markersize=9)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    finish(axes, "Perturbed leaders (ticks: Theorem 12.3)", "regret", legend=8)


def _loose(holds: bool) -> Agreement:
    return Agreement.LOOSER if holds else Agreement.WRONG


def _growth() -> dict[str, float]:
    """By how much E max / ln N grows from ten experts to a million, for noises of hazard 1."""
    few, many = ({one.name: one.largest(1.0, n) / math.log(n) for one in play.noises(n)} for n in (10, 10**6))
    return {name: many[name] / few[name] for name in few if name != "Gaussian"}


def ventilation() -> Experts:
    """Fourteen schedules of a level by day and one by night; too little air costs twice as much as too much."""
    levels = [(day, night) for day in np.linspace(0, 1, 7) for night in (0.0, 0.5)]
    schedules = {f"{a:.2f}/{b:g}": [a if 8 <= hour < 18 else b for hour in range(24)] for a, b in levels}

    def loss(level: FloatArray, people: FloatArray) -> FloatArray:
        return np.maximum(people / MOST - level, (level - people / MOST) / 2)

    table = loss(np.array(list(schedules.values())).T[:, :, None], np.arange(MOST + 1.0))
    return Experts(tuple(schedules), table)


def visits(rng: np.random.Generator) -> IntArray:
    """Counts of 90 days: three an hour by day, and one after half the time; few at night."""
    hours = np.arange(HOURS)
    by_day = np.where(hours < HOURS / 2, 3.0, 1.0)
    return np.minimum(rng.poisson(np.where((hours % 24 >= 8) & (hours % 24 < 18), by_day, 0.3)), MOST)


def _hourly(experts: Experts, counts: IntArray, epsilon: float, rng: np.random.Generator) -> IntArray:
    """Plays of the leader with noise on each hour's histogram, by day and by night, which moves by sqrt 2."""
    hours = np.arange(HOURS) % 24
    by_day = (hours >= 8) & (hours < 18)
    totals = np.zeros((HOURS, len(experts.names)))
    for part, hour in ((by_day, 12), (~by_day, 0)):
        cells = np.zeros((HOURS, MOST + 1))
        cells[np.flatnonzero(part), counts[part]] = 1.0
        noisy = cells + rng.standard_normal(cells.shape) * math.sqrt(2) / largest_mu(epsilon, DELTA)
        totals += np.cumsum(noisy, axis=0) @ experts.table[hour].T
    return np.asarray(np.vstack([np.zeros(totals.shape[1]), totals[:-1]]).argmin(axis=1))


def _private(epsilon: float, trials: int, key: tuple[int, ...]) -> tuple[Row, FloatArray, FloatArray]:
    """Regret of 90 days at one epsilon: of the learner, of the leader on its sums, and with noise on each hour.

    And what the best schedule loses in each trial, and the regret of Hedge without privacy.
    """
    experts, hours = ventilation(), np.arange(HOURS) % 24
    learner, leader = (Learner(experts, HOURS, epsilon=epsilon, delta=DELTA, rate=rate) for rate in (0.5, math.inf))
    found, best, plain = [], [], []
    for trial in range(trials):
        rng, chance = stream(*key, 0, trial), stream(*key, 1, trial, round(100 * epsilon))
        counts = visits(rng)
        losses = experts.table[hours, :, counts]
        best.append(float(losses.sum(axis=0).min()))
        plain.append(play.hedge(losses, math.sqrt(math.log(14) / best[-1])))
        shares = [one.simulate(counts, hours, rng=chance) for one in (learner, leader)]
        shares.append(np.eye(14)[_hourly(experts, counts, epsilon, chance)])
        found.append([(one * losses).sum() - best[-1] for one in shares])
    ours, leading, hourly = (Mean.of(column) for column in np.array(found).T)
    bound = regret_bound(learner, 215.0)
    row = Row(epsilon=epsilon, learner=ours, leader=leading, hourly=hourly, bound=bound)
    return row, np.array(best), np.array(plain)


def _perturbed(kind: str, draws: int, rng: np.random.Generator) -> tuple[Row, list[Row]]:
    """A game without noise, and the regret of each noise, its bound by Theorem 12.3, E max, and its hazard rate.

    Without noise: the loss of the best, the regret of the leader and of Hedge, and the order of the best regret.
    """
    losses = play.game(kind, ROUNDS, EXPERTS, rng)
    best, share = float(losses.sum(axis=0).min()), math.log(EXPERTS)
    rate = min(1.0, math.sqrt(share / best))
    rows = []
    for noise in play.noises(EXPERTS):
        parts = [play.regrets(losses, noise.draw(rate, (min(draws, 50), EXPERTS), rng)) for _ in range(-(-draws // 50))]
        largest = noise.largest(rate, EXPERTS)
        hazard = noise.hazard if math.isfinite(noise.hazard) else None
        rows.append(
            Row(
                game=kind,
                noise=noise.name,
                regret=Mean.of(np.concatenate(parts)),
                bound=2 * rate * best + 3 * largest,
                largest=largest,
                hazard=hazard,
            )
        )
    leader = float(play.regrets(losses, np.zeros((1, EXPERTS)))[0])
    order = math.sqrt(best * share) + share
    return Row(game=kind, best=best, leader=leader, hedge=play.hedge(losses, rate), order=order), rows


def _ensemble(size: int, chains: int, sweeps: int, rng: np.random.Generator) -> Row:
    """Matrices of noise: E of the sum of |eigenvalues| and of the largest one, and that of Gaussian matrices."""
    values = play.laplace_ensemble(size, chains, sweeps, rng)
    gaussian = np.linalg.eigvalsh(play.orthogonal_ensemble(size, 4 * chains, rng))[:, -1]
    norms, tops = np.abs(values).sum(axis=2).mean(axis=1), values[:, :, 0].mean(axis=1)
    return Row(size=size, norm=Mean.of(norms), largest=Mean.of(tops), gaussian=Mean.of(np.asarray(gaussian)))


def _lemma() -> tuple[float, float]:
    """Lemma 12.1 on [-1, 1] with the printed index, against 0.5, 1, -1, -1, 1, 1, ...: the bound and the regret."""
    losses = np.concatenate([[0.5, 1.0], np.tile([-1.0, -1.0, 1.0, 1.0], 50)])[:200]
    totals = np.concatenate([[0.0, 0.0], np.cumsum(losses)])  # x_{t+1} = argmin L_{t-1}
    plays = -np.sign(totals[: len(losses) + 1])
    regret = float(plays[:-1] @ losses) + abs(float(losses.sum()))
    return float((plays[:-1] - plays[1:]) @ losses), regret


def _work(run: Run) -> Learners:
    epsilons = run.choose((0.2, 0.5, 1.0, 4.0), (4.0,), (4.0,))
    trials, draws = run.choose(TRIALS, QUICK_TRIALS, 2), run.choose(400, 10, 4)
    sizes, chains, sweeps = run.choose(((2, 5, 10, 20), 100, 600), ((2, 5), 60, 120), ((2,), 10, 20))
    rows = [_private(epsilon, trials, (run.seed, 0)) for epsilon in epsilons]
    games = [_perturbed(kind, draws, stream(run.seed, 1, k)) for k, kind in enumerate((FIRST, SECOND))]
    single, together = play.reused_advantage(REUSED, TURNS)
    ensembles = tuple(_ensemble(size, chains, sweeps, stream(run.seed, 2, size)) for size in sizes)
    return Learners(
        private=tuple(row for row, _, _ in rows),
        best=Mean.of(rows[0][1]),
        hedge=Mean.of(rows[0][2]),
        games=tuple(one for one, _ in games),
        perturbed=tuple(one for _, found in games for one in found),
        single=single,
        together=together,
        ensembles=ensembles,
        lemma=_lemma(),
    )


EXPERIMENT = Experiment(
    "learners",
    "What learning costs: with private counts, by perturbed leaders, and for leading directions",
    Learners,
    _work,
    shows="McMillan, Lemmas 12.1, 12.6 and 13.7, Definition 12.2, Theorems 12.3, 12.4 and 13.1",
    minutes=1.5,
)
