"""Counts of events, with a bound on how much one event or one person can change."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray, as_number, count, frames, positive
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.readings import TextColumn
from cloakwork.series.bins import Bins
from cloakwork.series.bounded import BoundedSeries, Losses, fraction_lost
from cloakwork.series.input_checks import instance_of, numbers, whole_numbers

BINS = "Bins, such as Bins(start=0, every=3_600_000, n=24)"
_TOLERANCE = 1e-12
_SMALLEST, _LARGEST = 1e-30, 1e30  # of what one event may add: floats hold the squares of everything computed from it
_MOST_STEPS = 2.0**40  # of one event or person: beyond that no noise table is large enough
_HASH_PURPOSE = b"cloakwork lot"
_PERSONS = "persons: give a list of whole numbers or a list of texts, with one entry for each event."


def tally(
    times: ArrayLike,
    bins: Bins,
    *,
    values: ArrayLike | None = None,
    most_per_event: float | None = None,
    step: float | None = None,
    persons: ArrayLike | TextColumn | None = None,
    most_per_person: float | None = None,
    series: ArrayLike | None = None,
    names: int = 1,
) -> BoundedSeries:
    """Count events, or add up their values, in bins, so that one event or one person changes a bounded amount.

    Parameters
    ----------
    times
        Time of each event, shape (events,), Unix milliseconds. Events outside the bins are dropped.
    bins
        Public.
    values
        What each event adds instead of 1, shape (events,): clipped to [0, most_per_event] and rounded to whole steps,
        event by event.
    most_per_event
        With `values`; defaults to `most_per_person`.
    step
        With `values`: what they are rounded to. Defaults to the largest power of ten up to a thousandth of
        `most_per_event`.
    persons
        The person of each event, shape (events,): all whole numbers or all texts.
    most_per_person
        With `persons`: how many events of one person count, over all times and series, or how much of their value.
        A pseudo-random order of each person's times decides which; of events at the same time, the first counts first.
    series
        The series of each event, shape (events,), from 0 to `names` - 1; other events are dropped.
    names
        Number of series. Public.

    Notes
    -----
    Which events of a person count depends on that person's events only. Without all of them, everything else stays the
    same: the series differ by at most the contribution in the l1 norm. Without persons the same holds for each event.
    Amounts are whole numbers of steps, so no sum is ever rounded. The random order plays no part in the claim. It is
    there because counting the earliest events would make every series fade, as more and more people reach their limit.
    The order is a hash of the person's label and the time, and of nothing else: not of a number assigned to the label,
    which would depend on the other people.

    Examples
    --------
    >>> day = Bins(start=0, every=3_600_000, n=24)
    >>> hours = tally([0, 5, 7_200_000], day, persons=["a", "a", "b"], most_per_person=1)
    >>> hours.values[0, :3].tolist(), hours.contribution, hours.losses.over_limit
    ([1.0, 0.0, 1.0], 1, 1)
    """
    when = whole_numbers("times", times)
    places = instance_of("bins", bins, Bins, BINS).places(when)
    which = np.zeros(len(when), dtype=np.int64) if series is None else whole_numbers("series", series, len(when))
    named = (which >= 0) & (which < count("names", names))
    kept = (places >= 0) & named
    amounts = _amounts(len(when), values, most_per_event, step, most_per_person if persons is not None else None)
    taken, units, over_limit = _limited(when, amounts, kept, persons, most_per_person)
    steps = np.zeros((names, bins.n), dtype=np.int64)
    np.add.at(steps, (which[kept], places[kept]), taken[kept])
    clipped = int(amounts.clipped[kept].sum())
    losses = Losses(
        outside=int((places < 0).sum()),
        other_names=int(((places >= 0) & ~named).sum()),
        clipped=clipped,
        over_limit=over_limit,
        lower=fraction_lost(amounts.unlimited[kept], float(steps.sum())) if clipped or over_limit else 0.0,
    )
    if amounts.step is None:
        return BoundedSeries(steps.astype(np.float64), units, losses=losses)
    sums = np.asarray(steps * amounts.step, dtype=np.float64)
    return BoundedSeries(sums, units * amounts.step, step=amounts.step, touched=0, losses=losses)


def default_step(most: float) -> float:
    """The largest power of ten up to a thousandth of `most`.

    >>> default_step(50.0), default_step(1000.0)
    (0.01, 1.0)
    """
    exponent = math.floor(math.log10(positive("most_per_event", most)) + _TOLERANCE) - 3
    return float(f"1e{exponent}")


@dataclass(frozen=True, eq=False)
class _Amounts:
    """What each event adds, in steps, and the most that one event adds; `step` is None if events are counted.

    `unlimited` is what events would add without a limit, in fractional steps.
    """

    steps: IntArray
    unlimited: FloatArray
    most: int
    step: float | None
    clipped: NDArray[np.bool_]


def _amounts(
    events: int,
    values: ArrayLike | None,
    most_per_event: float | None,
    step: float | None,
    most_per_person: float | None,
) -> _Amounts:
    if values is None:
        for name, value in (("most_per_event", most_per_event), ("step", step)):
            if value is not None:
                raise InputError(
                    f"{name}={value!r} without values: each event counts as 1. Leave it out.", parameter=name
                )
        ones = np.ones(events, dtype=np.int64)
        return _Amounts(ones, ones.astype(np.float64), 1, None, np.zeros(events, dtype=bool))
    most = most_per_event if most_per_event is not None else most_per_person
    if most is None:
        raise CalibrationError(
            "values: give most_per_event, the most that the value of one event may count.", parameter="most_per_event"
        )
    most = positive("most_per_event", most, error=CalibrationError)
    if not _SMALLEST <= most <= _LARGEST:
        raise CalibrationError(
            f"most_per_event={most:g}: give a number from {_SMALLEST:g} to {_LARGEST:g}, in another unit.",
            parameter="most_per_event",
            most=most,
        )
    fine = default_step(most) if step is None else positive("step", step)
    largest = _in_steps("most_per_event", most, fine)
    array = frames("values", numbers("values", values, error=ReadingError), events, error=ReadingError)
    if array.ndim != 1:
        raise InputError(
            f"values has shape {array.shape}: give one for each of the {events} events.", shape=array.shape
        )
    clipped: FloatArray = np.clip(array, 0.0, most)
    rounded = np.minimum(np.rint(clipped / fine).astype(np.int64), largest)
    with np.errstate(over="ignore"):
        unlimited = np.asarray(array / fine, dtype=np.float64)
    return _Amounts(rounded, unlimited, largest, fine, np.asarray(clipped != array))


def _limited(
    when: IntArray,
    amounts: _Amounts,
    kept: NDArray[np.bool_],
    persons: ArrayLike | TextColumn | None,
    most: float | None,
) -> tuple[IntArray, int, int]:
    """What of each event counts, the most that one event or person changes, and how many events count only in part."""
    if persons is None:
        if most is not None:
            raise InputError(
                f"most_per_person={most!r} without persons: give the person of each event.", parameter="most_per_person"
            )
        return amounts.steps, amounts.most, 0
    if most is None:
        raise CalibrationError(
            "persons: give most_per_person, how many events of one person count.", parameter="most_per_person"
        )
    if amounts.step is not None:
        limit = _in_steps("most_per_person", positive("most_per_person", most), amounts.step)
    elif 1 <= as_number("most_per_person", most) <= _MOST_STEPS and most == int(most):
        limit = int(most)
    else:
        raise InputError(
            f"most_per_person={most!r}: give a whole number of events, from 1 to {_MOST_STEPS:,.0f}.",
            parameter="most_per_person",
            most_per_person=most,
        )
    people = persons if isinstance(persons, TextColumn) else _person_column(persons)
    if len(people.codes) != len(when):
        raise InputError(f"persons has {len(people.codes)} entries: give one for each of the {len(when)} events.")
    asked = np.where(kept, np.minimum(amounts.steps, limit), 0)
    taken = _within_limit(people, when, asked, limit)
    return taken, limit, int((taken < np.where(kept, amounts.steps, 0)).sum())


def _person_column(persons: ArrayLike) -> TextColumn:
    """Persons as texts. Lists bypass NumPy, which would make one person of 7 and "7", or of two large numbers."""
    array = np.asarray(persons) if hasattr(persons, "dtype") else np.empty(0, dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "iuUO":
        raise InputError(_PERSONS)
    if array.dtype != object:
        labels, codes = np.unique(array, return_inverse=True)
        return TextColumn(codes.reshape(-1), tuple(str(label) for label in labels.tolist()))
    if not hasattr(persons, "dtype") and (isinstance(persons, str | bytes) or not isinstance(persons, Iterable)):
        raise InputError(_PERSONS)
    entries: list[object] = list(array) if hasattr(persons, "dtype") else list(persons)  # type: ignore[arg-type]
    whole = all(isinstance(entry, int | np.integer) and not isinstance(entry, bool) for entry in entries)
    if not whole and not all(isinstance(entry, str) for entry in entries):
        raise InputError(_PERSONS)
    known: dict[object, int] = {}
    entry_codes = [known.setdefault(entry, len(known)) for entry in entries]
    return TextColumn(np.array(entry_codes, dtype=np.int64), tuple(map(str, known)))


def _within_limit(persons: TextColumn, times: IntArray, amounts: IntArray, limit: int) -> IntArray:
    """What of each amount counts if each person spends `limit` in all, in a pseudo-random order of times.

    The order is a permutation of the times of each person, without any pattern: SplitMix64's finaliser (Steele, Lea and
    Flood), seeded with a hash of the person's label.
    """
    if not len(times):
        return amounts
    hashes = (
        blake2b(label.encode(errors="surrogatepass"), digest_size=8, person=_HASH_PURPOSE) for label in persons.labels
    )
    seeds = np.frombuffer(b"".join(hashed.digest() for hashed in hashes), dtype="<u8").astype(np.uint64)
    people = persons.codes
    ranks = _mixed(seeds[people] ^ _mixed(times.astype(np.uint64)))
    order = np.lexsort((ranks, people))  # stable: of events at the same time the first comes first
    sorted_amounts, sorted_people = amounts[order], people[order]
    before = np.cumsum(sorted_amounts) - sorted_amounts
    first = np.r_[True, sorted_people[1:] != sorted_people[:-1]]
    own = before - before[first][np.cumsum(first) - 1]
    taken = np.empty_like(amounts)
    taken[order] = np.clip(limit - own, 0, sorted_amounts)
    return taken


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _in_steps(name: str, most: float, step: float) -> int:
    steps = most / step * (1 + _TOLERANCE)
    if not 1 <= steps <= _MOST_STEPS:
        raise CalibrationError(
            f"{name}={most:g} with step={step:g} is {steps:.3g} steps: give a step from {most / _MOST_STEPS:.2g} to "
            f"{most:g}.",
            parameter=name,
            most=most,
            step=step,
        )
    return math.floor(steps)
