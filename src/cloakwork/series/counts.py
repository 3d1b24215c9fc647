"""Counts of events in bins, with a bound on how much one event or one person can change."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, frames, instance_of, numbers, positive, read_only, whole_numbers
from cloakwork._compile import compiled
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.readings import TextColumn
from cloakwork.series.bins import Bins
from cloakwork.series.filters import Filter
from cloakwork.series.series_cloak import SeriesCloak, in_range
from cloakwork.series.strategies import Contribution

_TOLERANCE = 1e-12
_MAX_STEPS = 2**40  # of one event or person: beyond that no noise table is large enough
_HASH_PURPOSE = b"cloakwork lot"
_PERSONS = "persons: give a list of whole numbers or a list of texts, with one entry for each event."


@dataclass(frozen=True, eq=False, kw_only=True)
class Counts:
    """Private series, and how much one protected event or person can change them.

    Parameters
    ----------
    values
        Shape (series, n), multiples of `step`.
    contribution
        How much one event or person changes, in steps.
    bins
        When they were counted; public.
    names
        The names of the series. One series may have none.
    title, unit
        What was counted, such as the name of a file, and what the values count.
    hides
        What the guarantee covers, in a sentence.
    notes
        Sentences about how the columns of a file were understood.
    losses
        The number of events that were dropped or reduced, by reason. These are true numbers: never publish them.

    >>> counts = tally([0, 5, 7_200_000], Bins(start=0, every=3_600_000, n=24))
    >>> counts.values[0, :3].tolist(), counts.hides[:22]
    ([2.0, 0.0, 1.0], 'This hides each event:')
    """

    values: FloatArray = field(repr=False)
    contribution: Contribution
    bins: Bins
    step: float = 1.0
    names: tuple[str, ...] = ()
    title: str = "counts"
    unit: str = "events"
    hides: str = ""
    notes: tuple[str, ...] = ()
    losses: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or not self.values.size:
            raise InputError(f"values has shape {self.values.shape}: give (series, n).", shape=self.values.shape)
        read_only(self.values)

    def cloak(
        self,
        filters: Filter | Sequence[Filter],
        *,
        epsilon: float,
        delta: float,
    ) -> SeriesCloak:
        """Make a cloak for these series. Publish with `cloak.release(counts.values)`."""
        series, n = self.values.shape
        return SeriesCloak(
            filters,
            n,
            epsilon=epsilon,
            delta=delta,
            contribution=self.contribution,
            step=self.step,
            series=series,
        )

    @property
    def remarks(self) -> list[str]:
        """Sentences about data that were left out or reduced. They hold true numbers: never publish them."""
        remarks = [f"{number:,} {reason}" for reason, number in self.losses.items() if number]
        empty = [name for name, row in zip(self.names or ("the series",), self.values, strict=True) if not row.any()]
        if empty:
            remarks.append(f"nothing counts in {', '.join(empty)[:200]}: what is published of it is noise")
        return remarks


def tally(
    times: ArrayLike,
    bins: Bins,
    *,
    values: ArrayLike | None = None,
    most_per_event: float | None = None,
    step: float | None = None,
    persons: ArrayLike | TextColumn | None = None,
    most_per_person: float | None = None,
    separation: int | None = None,
    series: ArrayLike | None = None,
    names: Sequence[str] = (),
) -> Counts:
    """Count events, or add up their values, in bins, so that one event or one person changes a bounded amount.

    Parameters
    ----------
    times
        The time of each event, shape (events,), Unix milliseconds. Events outside the bins are dropped.
    bins
        Public.
    values, most_per_event, step
        What each event adds instead of 1, shape (events,): clipped to [0, most_per_event] and rounded to whole steps,
        event by event. The limit defaults to `most_per_person`, the step to about a thousandth of the limit.
    persons, most_per_person
        The person of each event, all whole numbers or all texts, and how many events of one person count, over all
        times and series, or how much of their value. A pseudo-random order of each person's times decides which.
    separation
        With `persons`: a person counts at most once in any `separation` consecutive bins, which needs less noise. Half
        the natural cycle, such as 12 hours of daily visits, loses hardly any events.
    series, names
        The series of each event as its place in `names`, which are public. Other events are dropped.

    Notes
    -----
    Which events of a person count depends on that person's events only. Without all of them, everything else stays the
    same. Amounts are whole numbers of steps, so no sum is ever rounded. The random order plays no part in the
    guarantee: if the earliest events counted, every series would fade as more and more people reach their limit. The
    order is a hash of the person's label and the time, and of nothing that depends on other people.

    Examples
    --------
    >>> day = Bins(start=0, every=3_600_000, n=24)
    >>> hours = tally([0, 5, 7_200_000], day, persons=["a", "a", "b"], most_per_person=1)
    >>> hours.values[0, :3].tolist(), hours.contribution.total, hours.losses["events above the limit of their person"]
    ([1.0, 0.0, 1.0], 1, 1)
    """
    when = whole_numbers("times", times)
    places = instance_of("bins", bins, Bins, "Bins, such as Bins(start=0, every=3_600_000, n=24)").places(when)
    which = np.zeros(len(when), dtype=np.int64) if series is None else whole_numbers("series", series, len(when))
    named = (which >= 0) & (which < max(len(names), 1))
    kept = (places >= 0) & named
    fine, per_event, contribution = _limits(
        values is not None, most_per_event, step, persons is not None, most_per_person, separation
    )
    amounts = np.ones(len(when), dtype=np.int64)
    raw = amounts.astype(np.float64)
    if values is not None:
        raw = frames("values", numbers("values", values, error=ReadingError), len(when), error=ReadingError)
        if raw.ndim != 1:
            raise InputError(f"values has shape {raw.shape}: give one for each event.", shape=raw.shape)
        amounts = np.rint(np.clip(raw / fine, 0.0, per_event)).astype(np.int64)
    offered = np.where(kept, amounts, 0)
    counting = offered
    if persons is not None:
        counting = _within_limits(persons, when, places, np.minimum(offered, contribution.total), contribution)
    steps = np.zeros((max(len(names), 1), bins.n), dtype=np.int64)
    np.add.at(steps, (which[kept], places[kept]), counting[kept])
    clipped = kept & (values is not None) & ((raw < 0) | (raw > per_event * fine * (1 + _TOLERANCE)))
    return Counts(
        values=np.asarray(steps * fine),
        contribution=contribution,
        step=fine,
        bins=bins,
        names=tuple(names),
        hides=_hides(contribution, fine, values is not None, persons is not None, len(names)),
        losses={
            "events outside the period": int((places < 0).sum()),
            "events of other series": int(((places >= 0) & ~named).sum()),
            "events clipped, because their value is below 0 or above the limit": int(clipped.sum()),
            "events above the limit of their person": int((counting < offered).sum()),
        },
    )


def _limits(
    with_values: bool,
    most_per_event: float | None,
    step: float | None,
    with_persons: bool,
    most_per_person: float | None,
    separation: int | None,
) -> tuple[float, int, Contribution]:
    """Return the step, the most that one event adds in steps, and the contribution."""
    for name, value, used, needed in (
        ("most_per_event", most_per_event, with_values, "values"),
        ("step", step, with_values, "values"),
        ("most_per_person", most_per_person, with_persons, "persons"),
        ("separation", separation, with_persons, "persons"),
    ):
        if value is not None and not used:
            raise InputError(f"{name}={value!r} without {needed}: give them, or leave it out.", parameter=name)
    if with_persons and most_per_person is None:
        raise CalibrationError("give most_per_person: how many events of one count.", parameter="most_per_person")
    most, fine = (1.0, 1.0)
    if with_values:
        limit = most_per_person if most_per_event is None else most_per_event
        if limit is None:
            raise CalibrationError(
                "give most_per_event: the most that one event may count.", parameter="most_per_event"
            )
        most = in_range("most_per_event", limit)
        thousandth = float(f"1e{math.floor(math.log10(most) + _TOLERANCE) - 3}")  # or less: a power of ten
        fine = thousandth if step is None else positive("step", step)
    per_event = _in_steps("most_per_event", most, fine)
    if most_per_person is None:
        return fine, per_event, Contribution(per_event)
    total = _in_steps("most_per_person", positive("most_per_person", most_per_person), fine)
    if not with_values and total != most_per_person:
        raise InputError(f"most_per_person={most_per_person!r}: give a whole number.", parameter="most_per_person")
    if separation is None:
        return fine, per_event, Contribution(total)
    return fine, per_event, Contribution(total, per_bin=min(per_event, total), separation=separation)


def _in_steps(name: str, most: float, step: float) -> int:
    steps = most / step * (1 + _TOLERANCE)
    if not 1 <= steps <= _MAX_STEPS:
        raise CalibrationError(
            f"{name}={most:g} with step={step:g} is {steps:.3g} steps: give from 1 to {_MAX_STEPS:,} steps.",
            parameter=name,
            most=most,
            step=step,
        )
    return math.floor(steps)


def _hides(contribution: Contribution, step: float, with_values: bool, with_persons: bool, names: int) -> str:
    most = f"{contribution.total * step:g}"
    if not with_persons:
        worth = f", up to a value of {most}" if with_values else ""
        return f"This hides each event{worth}: whether it happened or not. Someone with many events is hidden less."
    amount = f"a value of {most}" if with_values else "1 event" if most == "1" else f"{most} events"
    together = f", in all {names} series together" if names > 1 else ""
    spread = f", once in any {contribution.separation} bins" if contribution.per_bin else ""
    return f"This hides everything that one person did{together}: at most {amount} of each person{spread}."


def person_column(persons: Any) -> TextColumn:
    """Return persons as texts. Not through NumPy, which would make one person of 7 and "7", or of two large numbers."""
    if isinstance(persons, TextColumn):
        if len(set(persons.labels)) < len(persons.labels):
            raise InputError("persons: each label must occur once.")
        return persons
    if isinstance(persons, str | bytes) or not isinstance(persons, Iterable):
        raise InputError(_PERSONS)
    entries = persons.tolist() if isinstance(persons, np.ndarray) else list(persons)
    kinds = set(map(type, entries))
    whole = all(issubclass(kind, int | np.integer) and not issubclass(kind, bool) for kind in kinds)
    if not whole and not all(issubclass(kind, str) for kind in kinds):
        raise InputError(_PERSONS)
    known: dict[Any, int] = {}
    codes = [known.setdefault(entry, len(known)) for entry in entries]
    return TextColumn(np.array(codes, dtype=np.int64), tuple(map(str, known)))


def _within_limits(persons: Any, times: IntArray, places: IntArray, offered: IntArray, most: Contribution) -> IntArray:
    """Return the part of each amount that counts.

    The order of each person's times is a permutation without any pattern: SplitMix64's finaliser (Steele, Lea and
    Flood), seeded with a hash of the person's label.
    """
    column = person_column(persons)
    people = column.codes
    if len(people) != len(times):
        raise InputError(f"persons has {len(people)} entries: give one for each of the {len(times)} events.")
    hashes = [
        blake2b(label.encode(errors="surrogatepass"), digest_size=8, person=_HASH_PURPOSE).digest()
        for label in column.labels
    ]
    seeds = np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64)
    ranks = times.astype(np.uint64)
    for seed in (np.zeros(len(times), dtype=np.uint64), seeds[people]):
        ranks = (ranks ^ seed) + np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            ranks = (ranks ^ (ranks >> np.uint64(shift))) * np.uint64(factor)
        ranks = ranks ^ (ranks >> np.uint64(31))
    order = np.lexsort((ranks, people))  # stable: of events at the same time the first comes first
    counting = np.zeros_like(offered)
    separation = most.separation if most.per_bin else 0
    counting[order] = _take(people[order], places[order], offered[order], most.total, separation)
    return counting


@compiled
def _take(people: IntArray, places: IntArray, offered: IntArray, most: int, separation: int) -> IntArray:
    """Return what counts of each event, in this order: up to `most` a person, in bins that are far enough apart."""
    counting = np.zeros_like(offered)
    used = np.zeros_like(places)
    kept, left = 0, most
    for k in range(len(people)):
        if k > 0 and people[k] != people[k - 1]:
            kept, left = 0, most
        near = False
        if separation > 0:
            for j in range(kept):
                near = near or abs(places[k] - used[j]) < separation
        if not near and offered[k] > 0 and left > 0:
            counting[k] = min(offered[k], left)
            left -= counting[k]
            used[kept] = places[k]
            kept += 1
    return counting
