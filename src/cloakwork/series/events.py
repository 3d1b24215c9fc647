"""From events to counts, with a bound on what one event or one person can change."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray, as_number, count, frames, positive
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.readings import TextColumn
from cloakwork.series.bounded import Bins, BoundedSeries, Losses, bins_of, share_lost, whole
from cloakwork.series.given import numbers

_HAIR = 1e-12
SMALLEST, LARGEST = 1e-30, 1e30  # of what one event may add: floats hold the squares of all that is made of it
_MOST_STEPS = 2.0**40  # of one event or person: beyond, no noise table is large enough
_LOT = b"cloakwork lot"
_PERSONS = "persons: give a list of whole numbers, or of texts: one for each event, and all of one kind."


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
    """Count events, or add up their values, in bins: so that one event, or one person, changes a bounded amount.

    Parameters
    ----------
    times
        When each event was, shape (events,), Unix milliseconds. Events outside the bins are left out.
    bins
        Public.
    values
        What each event adds instead of 1, shape (events,): clipped to [0, most_per_event] and rounded to whole steps,
        each for itself.
    most_per_event
        With `values`; `most_per_person` if left out.
    step
        With `values`: what they are rounded to; a power of ten, a thousandth of `most_per_event` or less, if left out.
    persons
        Whose event each is, shape (events,): whole numbers, or texts, but not some of each.
    most_per_person
        With `persons`: how many events of one person count, over all times and series, or how much of their value.
        Which ones is drawn by lot, a lot of that person's own for each moment; of events at the same moment, the first.
    series
        Which series each event belongs to, shape (events,), from 0 to `names` - 1; others are left out.
    names
        How many series there are. Public.

    Notes
    -----
    What counts of a person's events depends on that person's events only. Take all of them away, and everything else
    stays as it was: the series differ by at most the contribution in the l1 norm. Without persons the same holds for
    each event. Amounts are whole numbers of steps, so that no sum is ever rounded. To draw by lot has no part in the
    claim; it is there because taking the earliest would make every series fade, as more and more reach their limit. A
    lot is a hash of the person's label and of the time, and of nothing else: not of a number that the label was given,
    which depends on who else is there.

    Examples
    --------
    >>> day = Bins(start=0, every=3_600_000, n=24)
    >>> hours = tally([0, 5, 7_200_000], day, persons=["a", "a", "b"], most_per_person=1)
    >>> hours.values[0, :3].tolist(), hours.contribution, hours.losses.over_limit
    ([1.0, 0.0, 1.0], 1, 1)
    """
    when = whole("times", times)
    kept = bins_of(bins).places(when)
    which = np.zeros(len(when), dtype=np.int64) if series is None else whole("series", series, len(when))
    named = (which >= 0) & (which < count("names", names))
    good = (kept >= 0) & named
    amounts = _amounts(len(when), values, most_per_event, step, most_per_person if persons is not None else None)
    taken, units, over = _limited(when, amounts, good, persons, most_per_person)
    steps = np.zeros((names, bins.n), dtype=np.int64)
    np.add.at(steps, (which[good], kept[good]), taken[good])
    clipped = int(amounts.clipped[good].sum())
    losses = Losses(
        outside=int((kept < 0).sum()),
        other_names=int(((kept >= 0) & ~named).sum()),
        clipped=clipped,
        over_limit=over,
        lower=share_lost(amounts.came[good], float(steps.sum())) if clipped or over else 0.0,
    )
    if amounts.step is None:
        return BoundedSeries(steps.astype(np.float64), units, losses=losses)
    sums = np.asarray(steps * amounts.step, dtype=np.float64)
    return BoundedSeries(sums, units * amounts.step, step=amounts.step, touched=0, losses=losses)


def default_step(most: float) -> float:
    """The power of ten that is a thousandth of `most`, or the next below.

    >>> default_step(50.0), default_step(1000.0)
    (0.01, 1.0)
    """
    exponent = math.floor(math.log10(positive("most_per_event", most)) + _HAIR) - 3
    return float(f"1e{exponent}")


@dataclass(frozen=True, eq=False)
class _Amounts:
    """What each event adds, in steps; `most` is the most of one event, None as a step says that events are counted.

    `came` is what it would add without a limit, in steps that may be broken.
    """

    steps: IntArray
    came: FloatArray
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
        for name, given in (("most_per_event", most_per_event), ("step", step)):
            if given is not None:
                raise InputError(f"{name}={given!r} without values: each event counts as 1. Leave it out.")
        ones = np.ones(events, dtype=np.int64)
        return _Amounts(ones, ones.astype(np.float64), 1, None, np.zeros(events, dtype=bool))
    most = most_per_event if most_per_event is not None else most_per_person
    if most is None:
        raise CalibrationError("values: give most_per_event, the most that the value of one event may count.")
    most = positive("most_per_event", most, error=CalibrationError)
    if not SMALLEST <= most <= LARGEST:
        raise CalibrationError(
            f"most_per_event={most:g}: give a number between {SMALLEST:g} and {LARGEST:g}, in another unit.", most=most
        )
    fine = default_step(most) if step is None else positive("step", step)
    largest = _in_steps("most_per_event", most, fine)
    array = frames("values", numbers("values", values, error=ReadingError), events, error=ReadingError)
    if array.ndim != 1:
        raise InputError(f"values has shape {array.shape}: give one for each of the {events} events.")
    clipped: FloatArray = np.clip(array, 0.0, most)
    whole = np.minimum(np.rint(clipped / fine).astype(np.int64), largest)
    with np.errstate(over="ignore"):
        came = np.asarray(array / fine, dtype=np.float64)
    return _Amounts(whole, came, largest, fine, np.asarray(clipped != array))


def _limited(
    when: IntArray,
    amounts: _Amounts,
    good: NDArray[np.bool_],
    persons: ArrayLike | TextColumn | None,
    most: float | None,
) -> tuple[IntArray, int, int]:
    """What of each event counts, the most that one protected may change, and how many events did not count in full."""
    if persons is None:
        if most is not None:
            raise InputError(f"most_per_person={most!r} without persons: say whose event each is.")
        return amounts.steps, amounts.most, 0
    if most is None:
        raise CalibrationError("persons: give most_per_person, how many events of one person count.")
    if amounts.step is None:
        limit = _as_count(most)
    else:
        limit = _in_steps("most_per_person", positive("most_per_person", most), amounts.step)
    who = persons if isinstance(persons, TextColumn) else _words(persons)
    if len(who.codes) != len(when):
        raise InputError(f"persons has {len(who.codes)} entries: give one for each of the {len(when)} events.")
    asked = np.where(good, np.minimum(amounts.steps, limit), 0)
    taken = _shared(who, when, asked, limit)
    return taken, limit, int((taken < np.where(good, amounts.steps, 0)).sum())


def _words(persons: ArrayLike) -> TextColumn:
    """Who there is. Of lists NumPy has no part in it: it would make one person of 7 and "7", or of large numbers."""
    array = np.asarray(persons) if hasattr(persons, "dtype") else np.empty(0, dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "iuUO":
        raise InputError(_PERSONS)
    if array.dtype != object:
        labels, codes = np.unique(array, return_inverse=True)
        return TextColumn(codes.reshape(-1), tuple(str(label) for label in labels.tolist()))
    given = list(array) if hasattr(persons, "dtype") else _listed(persons)
    if not (all(isinstance(one, str) for one in given) or all(_is_whole(one) for one in given)):
        raise InputError(_PERSONS)
    numbers: dict[object, int] = {}
    numbered = [numbers.setdefault(one, len(numbers)) for one in given]
    return TextColumn(np.array(numbered, dtype=np.int64), tuple(str(one) for one in numbers))


def _listed(values: ArrayLike) -> list[object]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(_PERSONS)
    return list(values)


def _is_whole(one: object) -> bool:
    return isinstance(one, int | np.integer) and not isinstance(one, bool)


def _shared(persons: TextColumn, times: IntArray, amounts: IntArray, limit: int) -> IntArray:
    """What of each amount counts if each person has `limit` in all, and spends it in the order of `_lots`."""
    if not len(times):
        return amounts
    who = persons.codes
    order = np.lexsort((_lots(persons, times), who))  # stable: of events at one moment the first comes first
    sorted_amounts, sorted_who = amounts[order], who[order]
    before = np.cumsum(sorted_amounts) - sorted_amounts
    first = np.r_[True, sorted_who[1:] != sorted_who[:-1]]
    own = before - before[first][np.cumsum(first) - 1]
    taken = np.empty_like(amounts)
    taken[order] = np.clip(limit - own, 0, sorted_amounts)
    return taken


def _lots(persons: TextColumn, times: IntArray) -> NDArray[np.uint64]:
    """A number for each person and moment, without any pattern; of one person no two moments have the same."""
    own = (blake2b(label.encode(errors="surrogatepass"), digest_size=8, person=_LOT) for label in persons.labels)
    seeds = np.frombuffer(b"".join(hashed.digest() for hashed in own), dtype="<u8").astype(np.uint64)
    return _mixed(seeds[persons.codes] ^ _mixed(times.astype(np.uint64)))


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A permutation of the numbers of 64 bits: the finaliser of SplitMix64 (Steele, Lea and Flood)."""
    lot = values + np.uint64(0x9E3779B97F4A7C15)
    lot = (lot ^ (lot >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    lot = (lot ^ (lot >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(lot ^ (lot >> np.uint64(31)))


def _in_steps(name: str, most: float, step: float) -> int:
    found = most / step * (1 + _HAIR)
    if not 1 <= found <= _MOST_STEPS:
        raise CalibrationError(
            f"{name}={most:g} is {found:g} steps of {step:g}: give a step of that size or smaller, but not so small "
            f"that there are more than {_MOST_STEPS:.2g}.",
            most=most,
            step=step,
        )
    return math.floor(found)


def _as_count(most: float) -> int:
    """A limit on events, as a whole number."""
    if not (1 <= as_number("most_per_person", most) <= _MOST_STEPS and most == int(most)):
        raise InputError(
            f"most_per_person={most!r}: give a whole number of events, from 1 to {_MOST_STEPS:.2g}.",
            most_per_person=most,
        )
    return int(most)
