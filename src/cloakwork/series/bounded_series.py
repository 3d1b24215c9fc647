"""Series with a bound on how much one event or person can change."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, count, describe_argument, frames, numbers, positive, whole_numbers
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.readings import TextColumn
from cloakwork.series.bins import Bins
from cloakwork.series.filters import Filter
from cloakwork.series.mechanisms import Mechanism
from cloakwork.series.series_cloak import SeriesCloak

_BINS = "give Bins, such as Bins(start=0, every=3_600_000, n=24)"
_TOLERANCE = 1e-12
_SUM_TOLERANCE = 1e-9  # far more than the rounding error of sums
_SMALLEST, _LARGEST = 1e-30, 1e30  # of what one event may add: floats hold the squares of everything computed from it
_MOST_STEPS = 2**40  # of one event or person: beyond that no noise table is large enough
_HASH_PURPOSE = b"cloakwork lot"
_PERSONS = "persons: give a list of whole numbers or a list of texts, with one entry for each event."


@dataclass(frozen=True)
class Losses:
    """Counts of events that bounding dropped or reduced. They are true numbers: never publish them.

    `rows` is the number of rows that a file has, of which `unreadable` could not be used, with some
    `advice`; `lines` are not even rows. `total` is the sum over all bins, and `unlimited` that without limits.
    """

    outside: int = 0
    other_names: int = 0
    clipped: int = 0
    over_limit: int = 0
    empty_bins: int = 0
    rows: int = 0
    unreadable: int = 0
    lines: int = 0
    advice: str = ""
    total: float = 0.0
    unlimited: float = 0.0

    @property
    def lower(self) -> float:
        """The fraction by which limits reduced the total: negative if values below 0 were clipped, 0 if nothing was."""
        return 1.0 - self.total / self.unlimited if self.unlimited > 0 else 0.0


@dataclass(frozen=True, eq=False)
class BoundedSeries:
    """Private series, and how much one protected event or person can change them.

    `values` have the shape (series, n). One protected event or person changes at most `contribution` in all,
    over all times and series. `step` and `touched` are as in `SeriesCloak`. `losses` are data dropped to keep to the
    contribution; they are not private.
    """

    values: FloatArray
    contribution: float
    step: float | None = None
    touched: int | None = None
    losses: Losses = field(default_factory=Losses, repr=False)

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)  # `release` checks them
        if values.ndim != 2 or not values.size:
            raise InputError(f"values has shape {values.shape}: give (series, n).", shape=values.shape)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    def cloak(
        self, filters: Filter | Sequence[Filter], *, epsilon: float, delta: float, mechanism: Mechanism | None = None
    ) -> SeriesCloak:
        """Make a cloak for these series. Publish with `cloak.release(series.values)`."""
        return SeriesCloak(
            filters,
            self.values.shape[1],
            epsilon=epsilon,
            delta=delta,
            contribution=self.contribution,
            step=self.step,
            touched=self.touched,
            series=self.values.shape[0],
            mechanism=mechanism,
        )


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
    if not isinstance(bins, Bins):
        raise InputError(f"bins={describe_argument(bins)}: {_BINS}.")
    places = bins.places(when)
    which = np.zeros(len(when), dtype=np.int64) if series is None else whole_numbers("series", series, len(when))
    named = (which >= 0) & (which < count("names", names))
    kept = (places >= 0) & named
    most = most_per_person if most_per_event is None else most_per_event
    limit, person_limit, fine = _limits(values is not None, most_per_event, step, persons is not None, most_per_person)
    amounts, unlimited = np.ones(len(when), dtype=np.int64), np.ones(len(when))  # in steps, as limits are
    clipped = over_limit = 0
    if values is not None:
        raw = frames("values", numbers("values", values, error=ReadingError), len(when), error=ReadingError)
        if raw.ndim != 1:
            raise InputError(f"values has shape {raw.shape}: give one for each event.", shape=raw.shape)
        inside = np.clip(raw, 0.0, most)
        amounts = np.minimum(np.rint(inside / fine).astype(np.int64), limit)
        clipped = int((inside != raw)[kept].sum())
        with np.errstate(over="ignore"):
            unlimited = raw / fine
    if persons is not None:
        limit, offered = person_limit, np.where(kept, amounts, 0)
        amounts = _within_limit(persons, when, np.minimum(offered, limit), limit)
        over_limit = int((amounts < offered).sum())
    with np.errstate(over="ignore", invalid="ignore"):
        without_limits = float(unlimited[kept].sum()) if clipped or over_limit else 0.0
    steps = np.zeros((names, bins.n), dtype=np.int64)
    np.add.at(steps, (which[kept], places[kept]), amounts[kept])
    losses = Losses(
        outside=int((places < 0).sum()),
        other_names=int(((places >= 0) & ~named).sum()),
        clipped=clipped,
        over_limit=over_limit,
        total=float(steps.sum()),
        unlimited=without_limits,
    )
    if values is None:
        return BoundedSeries(steps.astype(np.float64), limit, losses=losses)
    return BoundedSeries(np.asarray(steps * fine, dtype=np.float64), limit * fine, step=fine, touched=0, losses=losses)


def default_step(most: float) -> float:
    """The largest power of ten up to a thousandth of `most`.

    >>> default_step(50.0), default_step(1000.0)
    (0.01, 1.0)
    """
    exponent = math.floor(math.log10(positive("most_per_event", most)) + _TOLERANCE) - 3
    return float(f"1e{exponent}")


def _limits(
    with_values: bool,
    most_per_event: float | None,
    step: float | None,
    with_persons: bool,
    most_per_person: float | None,
) -> tuple[int, int, float]:
    """The most that one event adds, the most that one person adds, both in steps, and the step; 1 where not used."""
    for name, value, used, remedy in (
        ("most_per_event", most_per_event, with_values, "values: each event counts as 1. Leave it out"),
        ("step", step, with_values, "values: each event counts as 1. Leave it out"),
        ("most_per_person", most_per_person, with_persons, "persons: give the person of each event"),
    ):
        if value is not None and not used:
            raise InputError(f"{name}={value!r} without {remedy}.", parameter=name)
    most = most_per_person if most_per_event is None else most_per_event
    limit, fine = _value_limit(most, step) if with_values else (1, 1.0)
    if not with_persons:
        return limit, 1, fine
    if most_per_person is None:
        raise CalibrationError(
            "persons: give most_per_person, how many events of one person count.", parameter="most_per_person"
        )
    if with_values:
        return limit, _in_steps("most_per_person", positive("most_per_person", most_per_person), fine), fine
    whole = isinstance(most_per_person, float) and most_per_person.is_integer()
    events = count("most_per_person", int(most_per_person) if whole else most_per_person)  # type: ignore[arg-type]
    if events > _MOST_STEPS:
        raise InputError(
            f"most_per_person={most_per_person:g}: give at most {_MOST_STEPS:,}.", most_per_person=most_per_person
        )
    return limit, events, fine


def _value_limit(most: float | None, step: float | None) -> tuple[int, float]:
    """The most that the value of one event adds, in steps, and the step."""
    if most is None or not _SMALLEST <= positive("most_per_event", most, error=CalibrationError) <= _LARGEST:
        raise CalibrationError(
            f"most_per_event={most}: give the most that the value of one event may count, from {_SMALLEST:g} to "
            f"{_LARGEST:g}. Use another unit for others.",
            parameter="most_per_event",
            most=most,
        )
    fine = default_step(most) if step is None else positive("step", step)
    return _in_steps("most_per_event", most, fine), fine


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


def _within_limit(persons: ArrayLike | TextColumn, times: IntArray, amounts: IntArray, limit: int) -> IntArray:
    """The part of each amount that counts if each person spends `limit` in all, in a pseudo-random order of times.

    The order is a permutation of the times of each person, without any pattern: SplitMix64's finaliser (Steele, Lea and
    Flood), seeded with a hash of the person's label.
    """
    column = persons if isinstance(persons, TextColumn) else _person_column(persons)
    people = column.codes
    if len(people) != len(times):
        raise InputError(f"persons has {len(people)} entries: give one for each of the {len(times)} events.")
    if len(set(column.labels)) < len(column.labels):
        raise InputError("persons: each label must occur once.")
    if not len(times):
        return amounts
    hashes = (
        blake2b(label.encode(errors="surrogatepass"), digest_size=8, person=_HASH_PURPOSE) for label in column.labels
    )
    seeds = np.frombuffer(b"".join(hashed.digest() for hashed in hashes), dtype="<u8").astype(np.uint64)
    ranks = times.astype(np.uint64)
    for seed in (np.zeros(1, dtype=np.uint64), seeds[people]):
        ranks = (ranks ^ seed) + np.uint64(0x9E3779B97F4A7C15)
        ranks = (ranks ^ (ranks >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        ranks = (ranks ^ (ranks >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        ranks = ranks ^ (ranks >> np.uint64(31))
    order = np.lexsort((ranks, people))  # stable: of events at the same time the first comes first
    sorted_amounts, sorted_people = amounts[order], people[order]
    before = np.cumsum(sorted_amounts) - sorted_amounts
    first = np.r_[True, sorted_people[1:] != sorted_people[:-1]]
    own = before - before[first][np.cumsum(first) - 1]
    taken = np.empty_like(amounts)
    taken[order] = np.clip(limit - own, 0, sorted_amounts)
    return taken
