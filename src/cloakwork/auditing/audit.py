"""Audit a privacy claim from outside: draw reports on two inputs, and bet against the claim."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import as_number, count, not_negative, rounded_down, short_repr
from cloakwork.auditing.betting import LARGEST_EPSILON, Book
from cloakwork.auditing.curve import NO_CURVE, CurveBand, PrivacyCurve
from cloakwork.auditing.events import AuditedClaim
from cloakwork.auditing.independence import IndependenceCheck
from cloakwork.auditing.portfolio import portfolio
from cloakwork.auditing.reports import MAX_NUMBERS, RUN, Reader, ReportPair
from cloakwork.errors import InputError

Mechanism: TypeAlias = Callable[[int, int, np.random.Generator], ArrayLike]
Progress: TypeAlias = Callable[[int, int], None]

ANNOUNCED = 1_000  # reports before a violation is announced: with fewer, dependent reports pass unnoticed
FEWEST_REPORTS = 300
_FIRST, _LEAST = 200, 100  # reports to learn from before the first bet; the smallest batch
_GROWTH, _MAX_ROWS = 0.25, 1 << 15
NEVER_PROOF = (
    "No audit can verify a claim. Not excluded: other events, other inputs, leaks too small for this many reports, and "
    "a mechanism that behaves differently when it is not watched."
)


class Verdict(StrEnum):
    """The end of an audit. There is no "verified": no number of reports can show that."""

    VIOLATION = "violation"
    NONE_FOUND = "no violation found"
    WITHHELD = "withheld: reports depend on each other"


@dataclass(frozen=True, kw_only=True)
class Witness:
    """The event that shows a violation, in words such as "the output is above 1.25".

    `direction` is "0->1" where the event is too likely on input 0 for how rare it is on input 1. It happened `counts`
    times on inputs 0 and 1, among `reports` of each; events about a `span` of several reports are counted in runs of
    reports. `source` is its kind, one of `Audit.events`.

    Notes
    -----
    The counts are of the reports that were kept, and the event was chosen with their help: they illustrate the leak.
    `Audit.epsilon_lower` and `Audit.delta_lower` are certain.
    """

    event: str
    direction: str
    counts: tuple[int, int]
    reports: int
    source: str
    span: int = 1

    @property
    def frequencies(self) -> tuple[float, float]:
        """Frequency of the event on input 0 and on input 1."""
        return self.counts[0] / max(self.reports, 1), self.counts[1] / max(self.reports, 1)

    def __str__(self) -> str:
        first, second = (f"{100 * frequency:.4g} %" for frequency in self.frequencies)
        return f"{self.event}: {first} of the reports on input 0, {second} on input 1"


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The outcome of an audit of the claim (epsilon, delta) on one pair of inputs.

    The epsilon that holds at the claimed delta is at least `epsilon_lower`, and the delta that holds at the claimed
    epsilon at least `delta_lower`. `reports_used` on each input were drawn, of at most `ceiling`. If reports seem to
    depend on each other, `dependence` says how, and the verdict is withheld. `events` are the kinds that were tried.

    Notes
    -----
    All events together raise a false alarm with probability at most 1 - confidence, whenever the audit stopped. Each
    bound holds with this confidence. The band of the `profile` is another test with a confidence of its own: where it
    lies above a claim that the bets did not reject, the verdict takes precedence.

    Examples
    --------
    >>> found = audit(lambda database, size, rng: np.full(size, database), epsilon=1.0, rng=np.random.default_rng(1))
    >>> print(found.verdict, found.epsilon_lower > 1.0)
    violation True
    """

    verdict: Verdict
    epsilon: float
    delta: float
    confidence: float
    epsilon_lower: float
    delta_lower: float
    witness: Witness | None
    reports_used: int
    ceiling: int
    dependence: str
    profile: PrivacyCurve
    events: tuple[str, ...]

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        """Return the audit as plain values, ready for `json.dumps`."""
        values = asdict(self)
        claim = {"epsilon": values.pop("epsilon"), "delta": values.pop("delta")}
        curve = {name: np.asarray(part).tolist() for name, part in values.pop("profile").items()}
        if self.witness is not None:
            values["witness"]["frequencies"] = self.witness.frequencies
        return {**values, "claim": claim, "profile": curve}

    def __str__(self) -> str:
        lines = [
            self.verdict.value.capitalize(),
            f"claim: epsilon {self.epsilon:g}, delta {self.delta:g}; confidence {100 * self.confidence:g} %",
            f"reports: {self.reports_used:,} on each input, of at most {self.ceiling:,}",
        ]
        if self.dependence:
            lines += [f"seen: {self.dependence}. An audit counts reports as independent, so nothing is concluded."]
        else:
            lines += [
                f"epsilon is at least {rounded_down(self.epsilon_lower)} at delta {self.delta:g}; "
                f"delta is at least {rounded_down(self.delta_lower)} at epsilon {self.epsilon:g}"
            ]
        if self.witness is not None:
            lines += [f"witness: {self.witness}"]
        return "\n".join([*lines, f"events tried: {', '.join(self.events)}", NEVER_PROOF])


def audit(
    mechanism: Mechanism,
    *,
    epsilon: float,
    delta: float = 0.0,
    reports: int = 500_000,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Test the claim that a mechanism is (epsilon, delta)-differentially private on one pair of inputs.

    The result has a verdict, lower bounds, a witness and a privacy curve. It never says "verified".

    Parameters
    ----------
    mechanism
        `mechanism(database, size, rng)` returns `size` reports on input `database` (0 or 1): numbers, bools or words,
        shape (size,), or rows of them, shape (size, k). NaN, infinities and words among numbers are outcomes.
    epsilon, delta
        The claim; epsilon at most 700, delta below 1.
    reports
        The most reports to ask for on each input. A violation ends the audit earlier, but not before 1,000.
    confidence
        Of a violation, and of each bound.
    rng
        Passed to the mechanism; seeded by the operating system by default.
    progress
        Called with (reports so far, reports at most) after each batch.

    Notes
    -----
    `Book` explains why false alarms are rare, `portfolio` lists the events, and `IndependenceCheck` finds dependent
    reports.

    Examples
    --------
    Laplace noise of scale 1 on inputs 0 and 1 is private at epsilon = 1, and not at 0.5. It must be rounded: the low
    bits of floats distinguish 0 + noise from 1 + noise.

    >>> def laplace(database, size, rng):
    ...     return np.round(database + rng.laplace(size=size), 3)
    >>> result = audit(laplace, epsilon=0.5, rng=np.random.default_rng(1))
    >>> print(result.verdict, result.epsilon_lower > 0.5, result.reports_used < 10_000)
    violation True True
    >>> print(audit(laplace, epsilon=1.0, reports=5_000, rng=np.random.default_rng(1)).verdict)
    no violation found
    """
    claim, ceiling, confidence = _checked(epsilon, delta, reports, confidence)
    generator = np.random.default_rng() if rng is None else rng
    if not callable(mechanism) or not isinstance(generator, np.random.Generator):
        raise InputError("give a function of (database, size, rng), and rng as made by np.random.default_rng(1).")
    reader = Reader(lambda database, size: mechanism(database, size, generator))
    watch, band = IndependenceCheck(), CurveBand(confidence)
    past, used, chosen_at = reader.pair(_FIRST), _FIRST, _FIRST
    watch.add(past)
    bets = portfolio(past, claim)
    book = Book(bets, claim, confidence)
    dependence, width = watch.found(digits=False), past.x.width
    while used < ceiling and not dependence:
        if used >= chosen_at * (1.2 if width == 1 else 1.5):  # rows take longer to look through
            bets, chosen_at = portfolio(past, claim), used
            book.choose(bets)
        batch = reader.pair(_batch_size(used, ceiling, width))
        watch.add(batch)
        book.settle(batch)
        band.add(past, used, batch)
        past, used = past.followed_by(batch), used + len(batch.x)
        if progress is not None:
            progress(used, ceiling)
        dependence = watch.found(digits=False)
        if used >= ANNOUNCED and (book.violation or watch.found(digits=True)):
            break
    if not dependence:
        # low bits that depend on each other within a run are what an event about runs shows
        in_runs = book.violation and book.winner()[0].span > 1
        again = watch.found(digits=False, again=True) if book.violation else ""
        dependence = again or ("" if in_runs else watch.found(digits=True, again=book.violation))
    withheld, violation = bool(dependence), book.violation
    return Audit(
        verdict=Verdict.WITHHELD if withheld else Verdict.VIOLATION if violation else Verdict.NONE_FOUND,
        epsilon=claim.epsilon,
        delta=claim.delta,
        confidence=confidence,
        epsilon_lower=0.0 if withheld else book.epsilon_lower,
        delta_lower=0.0 if withheld else book.delta_lower,
        witness=_witness(book, reader, past) if violation and not withheld else None,
        reports_used=used,
        ceiling=ceiling,
        dependence=dependence,
        profile=NO_CURVE if withheld else band.curve(claim),
        events=tuple(bet.source for bet in bets),
    )


def _witness(book: Book, reader: Reader, past: ReportPair) -> Witness:
    bet, event = book.winner()
    seen = past if bet.span == 1 else past.runs()
    first, second = (int(event.holds(reports).sum()) for reports in seen)
    return Witness(
        event=event.describe(reader.shown, seen),
        direction=("0->1", "1->0")[event.direction],
        counts=(first, second),
        reports=len(seen.x),
        source=bet.source,
        span=bet.span,
    )


def _batch_size(used: int, ceiling: int, width: int) -> int:
    most, left = min(_MAX_ROWS, max(_LEAST, MAX_NUMBERS // width)), ceiling - used
    size = min(max(_LEAST, int(_GROWTH * used)) // RUN * RUN, most, left)
    return left if left - size < RUN else size  # fewer would be no run


def _checked(epsilon: float, delta: float, reports: int, confidence: float) -> tuple[AuditedClaim, int, float]:
    if not_negative("epsilon", epsilon) > LARGEST_EPSILON:
        raise InputError(f"epsilon={epsilon!r}: no number of reports can test it. Give at most 700.", epsilon=epsilon)
    if not_negative("delta", delta) >= 1:
        raise InputError(f"delta={delta!r}: every mechanism meets a delta of 1. Give a number below 1.", delta=delta)
    sure = as_number("confidence", confidence)
    if not 0.5 <= sure < 1:
        raise InputError(f"confidence={confidence!r}: give a number from 0.5 to below 1.", confidence=confidence)
    ceiling = count("reports", reports, minimum=FEWEST_REPORTS)
    return AuditedClaim(float(epsilon), float(delta)), ceiling, sure
