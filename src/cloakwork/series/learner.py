"""Learners: follow the schedule that does best, by private running sums of what each would have cost."""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.stats import norm

from cloakwork._checks import (
    FloatArray,
    IntArray,
    as_number,
    count,
    frozen,
    instance_of,
    not_negative,
    rounded_up,
    whole_numbers,
)
from cloakwork.errors import BudgetError, CalibrationError, InputError, ReadingError
from cloakwork.privacy import Explanation, Immutable, Ledger, check_claim
from cloakwork.series.experts import Experts
from cloakwork.series.filters import RunningSum
from cloakwork.series.learner_state import LearnerFile, LearnerProgress
from cloakwork.series.release_noise import odds_text
from cloakwork.series.stream import Stream


@dataclass(frozen=True)
class Play:
    """The expert to follow in the next round, its setting in the context, and its number."""

    expert: str
    setting: float | None
    number: int


@dataclass(frozen=True)
class Standing:
    """How much more than the best an expert has cost, by estimate, and the standard deviation of the noise in it."""

    expert: str
    excess: float
    standard_deviation: float


class _Segment:
    """The streams of one process, and what was published before them."""

    def __init__(self, streams: list[Stream], progress: LearnerProgress) -> None:
        self.streams = streams
        self.before, self.variance = np.array(progress.totals), progress.variance
        self.public = np.zeros(len(progress.totals))


@final
class Learner(Immutable):
    """Chooses among experts, round by round, and learns from private counts.

    Parameters
    ----------
    experts
        What each would cost; public.
    horizon
        The largest number of rounds.
    epsilon, delta
        The claim, for all that the learner ever publishes or plays.
    contribution
        How many visits of one protected event or person count in all rounds together; 1 hides one visit in one round.
    persons
        Whether `learn` takes the labels of the visitors instead of their number. The learner then enforces
        `contribution`: later visits of someone who has used it up do not count.
    rate
        How quickly to trust a lead: 1 / `rate` is the lead, in units of loss, that chance may still overturn. Infinity
        plays the leader.
    state
        A file that survives the process. It holds what was published and, with `persons`, how often each label counted.

    Notes
    -----
    Each count becomes a whole vector (`Experts`), one visit moves it by at most `reach`, and running sums of it are
    released by one `Stream` for each coordinate. Everything else follows from these sums and public losses, so no play
    spends anything. The plays minimise total_i - G_i / rate, with G of Gumbel's distribution drawn once: over G this is
    Hedge. G serves the regret, not privacy; at rate infinity the noise of the sums serves both: docs/learning.md.

    A round is used up on disk before its release. If the process ends there, the round is lost and its count must not
    be learned again. A new process continues from the published sums with new streams for new rounds. An event is then
    in one stream only, and the parts k_s of a person's k visits have sum k_s^2 <= k^2: the claim stays the same, and
    only the noise of the sums grows, by one stream for each restart.

    Examples
    --------
    >>> experts = Experts(["low", "high"], [[0.0, 0.5, 1.0], [0.3, 0.2, 0.1]])
    >>> learner = Learner(experts, 1000, epsilon=1.0, delta=1e-6)
    >>> play = learner.choose()
    >>> learner.learn(2)
    >>> learner.time, play.expert in experts.names
    (1, True)
    """

    _kind = "learner"

    def __init__(
        self,
        experts: Experts,
        horizon: int,
        *,
        epsilon: float,
        delta: float,
        contribution: int = 1,
        persons: bool = False,
        rate: float = 0.5,
        state: Path | None = None,
    ) -> None:
        check_claim(epsilon, delta)
        self.experts = instance_of("experts", experts, Experts, "Experts(names, losses)")
        self.horizon = count("horizon", horizon)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.contribution = count("contribution", contribution, error=CalibrationError)
        self.persons = persons
        self.rate = as_number("rate", rate)
        if not self.rate > 0:
            raise InputError(f"rate={rate!r}: give a number above 0, or infinity to play the leader.", rate=rate)
        self._widths = frozen(np.sqrt((experts.basis**2).sum(axis=1)))
        self._rounding = float(np.abs(_without_mean(experts.table) - experts.steps @ experts.basis.T).max())
        self._chance = np.random.default_rng().gumbel(size=len(experts.names))
        self._file = None if state is None else LearnerFile(Path(state), self._digest())
        try:
            stored = None if self._file is None else self._file.load()
        except InputError:
            self.close()
            raise
        self._progress = stored or LearnerProgress(0, 0, [0.0] * len(experts.names), 0.0)
        self._ledger = Ledger(
            self.horizon,
            unit="rounds",
            owner="learner",
            remedy="Start a new learner with its own budget for new rounds; choose() plays beyond the horizon too.",
        )
        self._ledger.spend(self._progress.spent)
        self._lock, self._segments = Lock(), list[_Segment]()
        self._freeze()

    @cached_property
    def stream(self) -> Stream:
        """The stream of one coordinate for all rounds, to study: what is learned goes into streams of its own."""
        return self._streams(self.horizon, 1)[0]

    @property
    def totals(self) -> FloatArray:
        """The estimated losses of the experts so far, without what they have in common. Public."""
        return np.array(self._progress.totals)

    @property
    def time(self) -> int:
        """Rounds that are used up, including lost ones."""
        return self._ledger.spent

    @property
    def lost(self) -> int:
        """Rounds that an interruption used up before their release."""
        return self._progress.spent - self._progress.learned

    def choose(self, context: int = 0) -> Play:
        """The expert to follow next. This spends nothing, however often it is called."""
        place = self._context(context)
        number = int(np.argmin(self.totals - self._chance / self.rate))
        settings = self.experts.settings
        setting = None if settings is None else float(np.asarray(settings)[place, number])
        return Play(self.experts.names[number], setting, number)

    def learn(self, visits: int | Iterable[str], context: int = 0) -> None:
        """Learn from one round that is over: the number of visits, or with `persons` their labels.

        Call it once for each round, also if nobody came: the number of rounds is public.
        """
        place = self._context(context)
        with self._lock:
            used = dict(self._progress.used)
            number = self._admitted(visits, used) if self.persons else _whole_count(visits)
            self._release(np.array([min(number, self.experts.most)]), np.array([place]), used, past=False)

    def learn_past(self, counts: ArrayLike, contexts: ArrayLike | None = None) -> None:
        """Learn from many past rounds at once, with far less noise: only their total is published."""
        if self.persons:
            raise InputError("past counts do not say who came: limit them with tally, and give persons=False.")
        kept, places = self._rounds(counts, contexts)
        with self._lock:
            self._release(kept, places, dict(self._progress.used), past=True)

    def ranking(self) -> tuple[Standing, ...]:
        """The experts, from the one with the least estimated loss on. This spends nothing."""
        totals, basis = self.totals, self.experts.basis
        best = int(totals.argmin())
        deviations = np.sqrt(self._progress.variance * ((basis - basis[best]) ** 2).sum(axis=1))
        excess = totals - totals[best]
        return tuple(
            Standing(self.experts.names[i], float(excess[i]), float(deviations[i])) for i in np.argsort(excess)
        )

    def regret_bound(self, best_loss: float | None = None) -> float:
        """A bound on the expected loss of all rounds beyond that of the best expert.

        `best_loss` is what the best expert is known to lose at most, if anything is. Counts must not depend on plays.

        Notes
        -----
        With f = rate / (1 - e^-rate) and M >= E max_i of the noise in the totals at the end, the loss is at most
        f (best + ln N / rate + M), and at most best + ln N / rate + M + rate horizon / 8. Lost rounds cost 1 each.
        The leader loses at most best + M + how much each round may change the distribution of its plays.
        """
        segment = self._segments[0] if self._segments else None
        before = self._progress.variance if segment is None else segment.variance
        left = self.horizon - self.time
        streams = segment.streams if segment is not None else self._streams(left, 1) if left else []
        noise = before + (float(streams[0].variances[-1]) if streams else 0.0)
        start_up = math.log(len(self.experts.names)) / self.rate + largest_noise(self._widths * math.sqrt(noise))
        slack = self.lost + 2 * self._rounding * self.horizon + 1e-6 * self.horizon
        bounds = [float(self.horizon), start_up + self.rate * self.horizon / 8 + slack]
        if math.isinf(self.rate) and streams:
            bounds.append(start_up + self._change_of_plays(before, streams[0]) + slack)
        if best_loss is not None and math.isfinite(self.rate):
            best = min(not_negative("best_loss", best_loss), float(self.horizon))
            factor = self.rate / -math.expm1(-self.rate)
            bounds.append(factor * (best + start_up + slack) - best)
        return min(bounds)

    def simulate(self, counts: ArrayLike, contexts: ArrayLike | None = None, *, rng: np.random.Generator) -> FloatArray:
        """The probability that a new learner plays each expert in each round, for simulated noise: (n, experts).

        Reproducible, hence not private; this spends nothing.
        """
        kept, places = self._rounds(counts, contexts)
        sums = self.stream.simulate(self.experts.steps[places, kept].T, rng=rng).values
        totals = np.cumsum(self._public(places), axis=0) + sums.T @ self.experts.basis.T
        before = np.vstack([np.zeros(len(self.experts.names)), totals[:-1]])
        if math.isinf(self.rate):
            return np.asarray(np.eye(before.shape[1])[before.argmin(axis=1)])
        return np.asarray(special.softmax(-self.rate * before, axis=1))

    def explain(self) -> Explanation:
        """Explain what is hidden, what is not, what it costs, and why."""
        visits = "one visit" if self.contribution == 1 else f"up to {self.contribution} visits of one person"
        who = f"anything that one person did (at most {self.contribution} visits count)" if self.persons else visits
        last = self.stream.variances[-1]
        return Explanation(
            (
                f"Someone who sees every play and every ranking can hardly tell whether {who} took place: "
                f"{odds_text(self.epsilon, self.delta)}.",
                "This also holds if later visits depend on earlier plays.",
            ),
            (
                "The experts, their losses, the contexts and the number of rounds are public.",
                "Someone who comes more often is hidden less, or not counted beyond the limit with persons=True.",
                f"Counts above {self.experts.most} are learned as {self.experts.most}.",
            ),
            (
                f"The loss of a schedule is off by up to {math.sqrt(last) * float(self._widths.max()):.3g} (standard "
                f"deviation) after {self.horizon:,} rounds.",
                f"The loss exceeds that of the best by at most {rounded_up(self.regret_bound())} on average, "
                "whatever the counts.",
            ),
            (
                f"{self.experts.basis.shape[1]} running sums are released each round, from which all losses follow.",
                "Plays follow from these sums: to play costs nothing.",
            ),
        )

    def close(self) -> None:
        """Let another process use the state."""
        if self._file is not None:
            self._file.close()

    def __reduce__(self) -> str:
        raise BudgetError("a learner cannot be copied: the copy would draw other noise for the same rounds.")

    def _release(self, counts: IntArray, places: IntArray, used: dict[str, int], *, past: bool) -> None:
        """Release rounds; whatever interrupts this, they are used up, and the next ones begin a new segment."""
        progress = self._progress
        self._ledger.spend(len(counts))
        segments, self._segments[:] = list(self._segments), []
        progress.spent, progress.used = self.time, used
        self._save()
        if past or not segments:
            left = 1 if past else self.horizon - self.time + 1
            segments = [_Segment(self._streams(left, self.experts.basis.shape[1]), progress)]
        segment, steps = segments[0], self.experts.steps[places, counts].sum(axis=0).tolist()
        moments = [stream.push(step) for stream, step in zip(segment.streams, steps, strict=True)]
        segment.public += self._public(places).sum(axis=0)
        sums = np.array([moment.value for moment in moments])
        progress.totals = (segment.before + segment.public + self.experts.basis @ sums).tolist()
        progress.variance = segment.variance + moments[0].standard_deviation ** 2
        progress.learned += len(counts)
        self._save()
        self._segments[:] = [] if past else [segment]

    def _change_of_plays(self, before: float, stream: Stream) -> float:
        """By how much the rounds together may change the leader's plays, in total variation; rounds before cost 1."""
        basis, public = self.experts.basis, self._public(np.arange(len(self.experts.table))).T
        free = np.linalg.lstsq(basis, public)[0]
        if np.abs(basis @ free - public).max() > 1e-9:
            return math.inf  # some losses for a count of 0 have no noise
        farthest = float(np.linalg.norm(self.experts.steps + free.T[:, None, :], axis=2).max())
        variances = before + np.concatenate([[0.0], stream.variances])
        noisy = variances[:-1][variances[:-1] > 0]
        rounding = 2 * np.abs(basis).sum(axis=1).max() * math.sqrt(self.horizon * variances[-1] / stream.noise.variance)
        changes = 1 - 2 * norm.sf(farthest / (2 * np.sqrt(noisy)))
        return float(changes.sum() + self.horizon * (1 + rounding) - len(noisy))

    def _streams(self, horizon: int, number: int) -> list[Stream]:
        """Streams for the rest of the rounds; no more than coordinates times rounds can ever be made."""
        return [
            Stream(
                RunningSum(),
                horizon,
                epsilon=self.epsilon,
                delta=self.delta,
                contribution=self.experts.reach * self.contribution,
                together=self.experts.basis.shape[1] * self.horizon,
            )
            for _ in range(number)
        ]

    def _admitted(self, visits: object, used: dict[str, int]) -> int:
        """The number of visits that count; adds them to `used`."""
        if isinstance(visits, str | bytes) or not isinstance(visits, Iterable):
            raise ReadingError("visits: give a list of the labels of the visitors, empty if nobody came.")
        admitted = 0
        for label in visits:
            key = hashlib.blake2b(str(label).encode(), digest_size=16).hexdigest()
            if used.get(key, 0) < self.contribution:
                used[key] = used.get(key, 0) + 1
                admitted += 1
        return admitted

    def _public(self, places: IntArray) -> FloatArray:
        """The losses for a count of 0, which need no privacy, without what all experts have in common."""
        base = self.experts.table[places, :, 0]
        return np.asarray(base - base.mean(axis=1, keepdims=True))

    def _rounds(self, counts: ArrayLike, contexts: ArrayLike | None) -> tuple[IntArray, IntArray]:
        """The counts of many rounds, up to those that matter, and their contexts."""
        numbers = whole_numbers("counts", counts)
        places = np.zeros_like(numbers) if contexts is None else whole_numbers("contexts", contexts, len(numbers))
        if not len(numbers) or (numbers < 0).any():
            raise ReadingError("counts: give at least one, and whole numbers of 0 or above.")
        if ((places < 0) | (places >= len(self.experts.table))).any():
            raise InputError(f"contexts: give numbers from 0 to {len(self.experts.table) - 1}.")
        return np.minimum(numbers, self.experts.most), places

    def _context(self, context: int) -> int:
        contexts = len(self.experts.table)
        place = count("context", context, least=0)
        if place >= contexts:
            raise InputError(f"context={context}: give a number from 0 to {contexts - 1}.", context=context)
        return place

    def _save(self) -> None:
        if self._file is not None:
            self._file.save(self._progress)

    def _digest(self) -> str:
        """Identifies everything that the released numbers and the claim depend on."""
        parts = (self.horizon, self.epsilon, self.delta, self.contribution, self.persons, self.experts.names)
        return hashlib.sha256(repr(parts).encode() + self.experts.table.tobytes()).hexdigest()


def largest_noise(deviations: FloatArray) -> float:
    """An upper bound on E max_i X_i for normal variables of these standard deviations, whatever their correlations.

    Notes
    -----
    max_i X_i <= x + sum (X_i - x)_+ for every x; the best of some x is taken.
    """
    used = deviations[deviations > 0]
    if not len(used):
        return 0.0
    x = np.linspace(0.0, 4.0, 81)[:, None] * used.max()
    above = used * norm.pdf(x / used) - x * norm.sf(x / used)
    return float((x[:, 0] + above.sum(axis=1)).min())


def _without_mean(table: FloatArray) -> FloatArray:
    """The effect of each count on the losses, shape (contexts, counts, experts), without what all have in common."""
    effect = np.moveaxis(table - table[:, :, :1], 1, 2)
    return np.asarray(effect - effect.mean(axis=2, keepdims=True))


def _whole_count(visits: object) -> int:
    if isinstance(visits, bool) or not isinstance(visits, int | np.integer) or visits < 0:
        raise ReadingError("visits: give a whole number, 0 or above.")
    return int(visits)
