"""Audit a privacy claim from outside: draw reports on two inputs, and bet against the claim."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from cloakwork._checks import FloatArray, as_number, count, not_negative
from cloakwork.auditing.betting import LARGEST_EPSILON, Book, counts_of
from cloakwork.auditing.event_search import NO_CANDIDATES, AuditedClaim, Candidates
from cloakwork.auditing.features import IDENTITY, likelihood_ratio
from cloakwork.auditing.independence import BitCheck, IndependenceCheck
from cloakwork.auditing.output_events import describe_value
from cloakwork.auditing.portfolio import EventFamily, portfolio
from cloakwork.auditing.privacy_curve import CurveBand
from cloakwork.auditing.report_samples import (
    RUN,
    Answers,
    Feature,
    Mechanism,
    Past,
    ReportKind,
    Reports,
    ask,
    kind_of,
    read,
)
from cloakwork.auditing.result import NO_CURVE, Audit, Verdict, Witness
from cloakwork.errors import InputError

Density: TypeAlias = Callable[[FloatArray], Any]
Progress: TypeAlias = Callable[[int, int], None]

_FIRST = 200  # reports to learn from before the first bet
ANNOUNCED = 1_000  # reports before a violation is announced: with fewer, reports that depend on each other pass
_LEAST = 100
_GROWTH = 0.25
_MOST_ROWS = 1 << 15
_MOST_NUMBERS = 1 << 20


def audit(
    mechanism: Mechanism,
    *,
    epsilon: float,
    delta: float = 0.0,
    reports: int = 500_000,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    densities: tuple[Density, Density] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Test the claim that a mechanism is (epsilon, delta)-differentially private on one pair of inputs.

    The result has a verdict, lower bounds, a witness and a profile. It never says "verified": no number of reports can
    show that.

    Parameters
    ----------
    mechanism
        `mechanism(database, size, rng)` gives `size` reports on input `database` (0 or 1): numbers, whole numbers,
        bools or words, shape (size,), or rows of numbers or bits, shape (size, k). NaN and infinities are outcomes, and
        so are words among numbers (as in an array of objects).
    epsilon, delta
        The claim; epsilon at most 700, delta below 1.
    reports
        The most reports to ask for on each input. A violation ends the audit earlier, but not before 1,000.
    confidence
        Of a violation, and of each bound.
    rng
        Passed to the mechanism; from the operating system by default.
    densities
        Two functions that give the log densities of outputs, shape (size,) or (size, k), on inputs 0 and 1: the exact
        likelihood ratio is then tried too.
    progress
        Called with (reports done, reports at most) after each batch.

    Notes
    -----
    `Book` explains why false alarms are rare, `EventFamily` which events are tried, and `IndependenceCheck` how
    dependent reports are found.

    Examples
    --------
    Laplace noise of scale 1 on inputs 0 and 1 is private at epsilon = 1, and not at 0.5. Its floats must be rounded:
    their low bits tell 0 + noise from 1 + noise, which an audit finds within some hundred reports.

    >>> def laplace(database, size, rng):
    ...     return np.round(database + rng.laplace(size=size), 3)
    >>> result = audit(laplace, epsilon=0.5, rng=np.random.default_rng(1))
    >>> print(result.verdict, result.epsilon_lower > 0.5, result.reports_used < 10_000)
    violation True True
    >>> print(audit(laplace, epsilon=1.0, reports=5_000, rng=np.random.default_rng(1)).verdict)
    no violation found
    """
    if not_negative("epsilon", epsilon) > LARGEST_EPSILON:
        raise InputError(
            f"epsilon={epsilon!r}: e^epsilon is beyond what a computer can hold, and what any number of reports can "
            f"test. Give at most {LARGEST_EPSILON:g}.",
            epsilon=epsilon,
        )
    if not_negative("delta", delta) >= 1:
        raise InputError(f"delta={delta!r}: every mechanism meets a delta of 1. Give a number below 1.", delta=delta)
    ceiling = count("reports", reports)
    if ceiling < _FIRST + _LEAST:
        raise InputError(
            f"reports={reports}: an audit needs at least {_FIRST + _LEAST} on each input.", reports=reports
        )
    sure = as_number("confidence", confidence)
    if not 0.5 <= sure < 1:
        raise InputError(f"confidence={confidence!r}: give a number from 0.5 to below 1.", confidence=confidence)
    if not callable(mechanism):
        raise InputError("mechanism: give a function of (database, size, rng).")
    generator = np.random.default_rng() if rng is None else rng
    if not isinstance(generator, np.random.Generator):
        raise InputError(f"rng={rng!r}: give a generator, such as np.random.default_rng(1).")
    if densities is not None and (len(densities) != 2 or not all(map(callable, densities))):
        raise InputError("densities: give two functions, the log densities of the outputs on inputs 0 and 1.")
    given = None if densities is None else likelihood_ratio(densities)
    claim = AuditedClaim(float(epsilon), float(delta))
    return _Session(mechanism, claim, ceiling, sure, generator, given).run(progress)


class _Session:
    """One audit under way."""

    def __init__(
        self,
        mechanism: Mechanism,
        claim: AuditedClaim,
        ceiling: int,
        confidence: float,
        rng: np.random.Generator,
        given: Feature | None,
    ) -> None:
        self._mechanism, self._rng = mechanism, rng
        self._claim, self._ceiling, self._confidence = claim, ceiling, confidence
        self._given = given
        self._watch, self._bits = IndependenceCheck(), BitCheck()
        self._band = CurveBand(confidence=confidence, given=given)
        answers = ask(mechanism, _FIRST, rng)
        self._kind, self._width = kind_of(answers), int(answers[0].shape[1])
        if given is not None and self._kind is ReportKind.TEXT:
            raise InputError("densities are of numbers, and this mechanism gives words: leave them out.")
        x, y = (read(answer, self._kind) for answer in answers)
        self._dependence = self._watch.look(x, y)
        self._bits.look(x, y)
        self._past = Past(x, y, np.random.default_rng(int(rng.integers(1 << 63))))
        self._runs = Past(x.runs(), y.runs(), self._past.rng, run=RUN)
        self._families = self._portfolio()
        self._book = Book(self._families, epsilon=claim.epsilon, delta=claim.delta, confidence=confidence)
        self._used = _FIRST
        self._begin()
        self._constant = self._are_one(x, y)

    def _begin(self) -> None:
        self._choices: list[Candidates] = [NO_CANDIDATES] * len(self._families)
        self._chosen_at = 0
        self._runs_chosen_at = 0

    def run(self, progress: Progress | None) -> Audit:
        """Bet until the claim is rejected, the reports run out, or they turn out to depend on each other."""
        while self._used < self._ceiling and not self._dependence:
            self._choose()
            self._bet(ask(self._mechanism, self._size, self._rng, width=self._width))
            if progress is not None:
                progress(self._used, self._ceiling)
            if self._used >= ANNOUNCED and (self._book.violation or self._bits.dependence):
                break
        if not self._dependence:
            self._dependence = self._look_again()
        return self._result()

    def _look_again(self) -> str:
        """The dependence that matters for the verdict: of runs where the winning event is about runs, else of reports.

        Low bits that depend on each other within runs are what such an event shows.
        """
        if not self._book.violation:
            return self._bits.dependence
        place, _, _ = self._book.winner()
        if self._families[place].span > 1:
            return self._watch.look_again()
        return self._watch.look_again() or self._bits.dependence

    @property
    def _size(self) -> int:
        """Reports to ask for next."""
        most = min(_MOST_ROWS, max(_LEAST, _MOST_NUMBERS // self._width))
        left = self._ceiling - self._used
        size = min(max(_LEAST, int(_GROWTH * self._used)) // RUN * RUN, most, left)
        return left if left - size < RUN else size  # fewer would be no run

    def _choose(self) -> None:
        """Choose events anew when there is more to choose from; rows cost more to look through, and runs most."""
        if self._used < self._chosen_at * (1.2 if self._width == 1 else 1.5):
            return
        again = self._used >= self._runs_chosen_at * 2
        for place, family in enumerate(self._families):
            if family.span == 1 or again:
                self._choices[place] = family.choose(*self._view(family))
        self._book.choose(self._choices)
        self._chosen_at = self._used
        if again:
            self._runs_chosen_at = self._used

    def _portfolio(self) -> list[EventFamily]:
        return portfolio(self._kind, self._width, self._given, epsilon=self._claim.epsilon)

    def _view(self, family: EventFamily) -> tuple[Past, AuditedClaim]:
        """The reports that a family chooses from, one by one or in runs, and the claim about so many."""
        claim = AuditedClaim(family.span * self._claim.epsilon, family.span * self._claim.delta)
        return self._past if family.span == 1 else self._runs, claim

    def _bet(self, answers: Answers) -> None:
        x, y = (read(answer, self._kind) for answer in answers)
        self._dependence = self._watch.look(x, y)
        self._bits.look(x, y)
        self._book.settle(x, y)
        self._constant = self._constant and self._are_one(x, y)
        self._band.add(self._past, x, y)
        self._past.add(x, y)
        self._runs.add(x.runs(), y.runs())
        self._used += len(x)
        if kind_of(answers, self._kind) is not self._kind and not self._book.violation:
            self._as_floats()

    def _are_one(self, *parts: Reports) -> bool:
        """Whether all of these are the first report of all."""
        return all(bool((part.codes == self._past.x.codes[0]).all()) for part in parts)

    def _as_floats(self) -> None:
        """Go on with floats, now that one has come; bets on whole numbers are settled by then."""
        self._kind = ReportKind.FLOAT
        self._past.as_floats()
        self._runs.as_floats()
        self._families = self._portfolio()
        self._book.reopen(self._families)
        self._begin()

    def _result(self) -> Audit:
        withheld, violation = bool(self._dependence), self._book.violation
        verdict = Verdict.VIOLATION if violation else Verdict.NONE_FOUND
        return Audit(
            verdict=Verdict.WITHHELD if withheld else verdict,
            epsilon=self._claim.epsilon,
            delta=self._claim.delta,
            confidence=self._confidence,
            epsilon_lower=0.0 if withheld else self._book.epsilon_lower,
            delta_lower=0.0 if withheld else self._book.delta_lower,
            witness=self._witness() if violation and not withheld else None,
            reports_used=self._used,
            ceiling=self._ceiling,
            independent=not withheld,
            dependence=self._dependence,
            profile=NO_CURVE if withheld else self._band.profile(self._claim),
            events=tuple(family.source for family in self._families),
            only=describe_value(IDENTITY, self._past.x.feature(IDENTITY)[0], self._past) if self._constant else "",
        )

    def _witness(self) -> Witness:
        place, way, choice = self._book.winner()
        family = self._families[place]
        past, _ = self._view(family)
        return Witness(
            event=choice.event.describe(past),
            direction=("0->1", "1->0")[way],
            counts=counts_of(choice, past),
            reports=len(past.x),
            source=family.source,
            span=family.span,
        )
