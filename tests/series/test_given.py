"""Arguments of the wrong type are refused by name, and never shown if they may be data."""

from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloakwork._checks import numbers
from cloakwork.errors import InputError, ReadingError
from cloakwork.series import (
    Bins,
    BoundedSeries,
    Coefficients,
    Fourier,
    Least,
    MarginalsCloak,
    RunningSum,
    SeriesCloak,
    SquareRoot,
    Stream,
    Taps,
    convolve,
    marginals,
    publish,
    tally,
)
from papers.paper_laplace import PaperLaplace
from tests.series.series_kit import CLAIM

X = [3, 0, 4, 1]
RAGGED: Any = [[1], [1, 2]]
HOURS = Bins(start=0, every=1, n=4)
SECRET = 87654321


class Nameless:
    """Has taps and no name."""

    def taps(self, n: int) -> Taps:
        return Taps(np.ones(n))


class Tapless:
    """Has a name, and something else as taps."""

    name = "odd"

    def taps(self, n: int) -> int:
        return n


@pytest.mark.parametrize(
    "call",
    [
        lambda mechanism: convolve(X, [1.0], **CLAIM, mechanism=mechanism),
        lambda mechanism: publish(X, RunningSum(), **CLAIM, mechanism=mechanism),
        lambda mechanism: SeriesCloak(RunningSum(), 4, **CLAIM, mechanism=mechanism),
        lambda mechanism: tally(X, HOURS).cloak(RunningSum(), **CLAIM, mechanism=mechanism),
    ],
    ids=["convolve", "publish", "cloak", "bounded"],
)
def test_anything_but_a_mechanism_is_refused(call: Callable[[Any], object]) -> None:
    for other in ("paper", PaperLaplace, Fourier, Least, SquareRoot, RunningSum(), [Fourier()], 3, object()):
        with pytest.raises(InputError, match=r"^mechanism="):
            call(other)


@pytest.mark.parametrize(
    "call",
    [
        lambda what: publish(X, what, **CLAIM),
        lambda what: publish(X, [RunningSum(), what], **CLAIM),
        lambda what: tally(X, HOURS).cloak(what, **CLAIM),
        lambda what: Stream(what, 10, **CLAIM),
        lambda what: Stream(what, None, **CLAIM),
    ],
    ids=["publish", "several", "bounded", "stream", "endless"],
)
def test_anything_but_a_filter_is_refused(call: Callable[[Any], object]) -> None:
    taps = Taps(np.ones(2))
    for other in ("running-sum", RunningSum, None, 0.5, np.ones(2), taps, {RunningSum()}, Nameless(), Tapless()):
        with pytest.raises(InputError, match=r"is not a filter|odd\.taps\("):
            call(other)


def test_a_refused_filter_is_not_shown_since_it_may_be_the_data() -> None:
    for what in (SECRET, [SECRET], np.full(3, SECRET), {SECRET: 1}):
        with pytest.raises(InputError, match="is not a filter") as refused:
            SeriesCloak(what, 4, **CLAIM)  # type: ignore[arg-type]
        assert "8765" not in str(refused.value) + repr(refused.value.values)
    with pytest.raises(InputError, match="Coefficients"):
        publish(X, [0.5, 0.5], **CLAIM)  # type: ignore[list-item]


NOT_A_SERIES: list[tuple[Any, str]] = [
    ([], r"^x has shape \(0,\)"),
    ([[], []], r"^x has shape \(2, 0\)"),
    (3, r"^x has shape \(\)"),
    (np.zeros((2, 2, 2)), r"^x has shape \(2, 2, 2\)"),
    ((value for value in X), "^x: "),
    ({1, 2}, "^x: "),
    ({"a": 1}, "^x: "),
    (None, "^x: "),
    ("1234", "^x: "),
    (RAGGED, "^x: "),
    (["1", "2"], "^x holds texts"),
    ([b"1", b"2"], "^x holds texts"),
    ([1, "2"], "^x holds texts"),
    (np.array(["1", 2], dtype=object), "^x: "),
    (np.array([np.timedelta64(1, "s"), 1], dtype=object), "^x: "),
    (np.array(["2026-10-05"], dtype="datetime64[s]"), "^x holds dates"),
    (np.array([3], dtype="timedelta64[s]"), "^x holds dates"),
    ([datetime(2026, 10, 5)], "^x: "),
    ([1j], "^x holds complex"),
]


@pytest.mark.parametrize(("x", "says"), NOT_A_SERIES)
def test_anything_but_a_series_is_refused_before_other_arguments(x: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        convolve(x, [1.0], **CLAIM)
    again: Any = (value for value in X) if hasattr(x, "__next__") else x
    with pytest.raises(InputError, match=says):
        publish(again, RunningSum(), **CLAIM)


def test_truths_fractions_and_large_whole_numbers_are_numbers() -> None:
    assert convolve([True, False], [1.0], **CLAIM).values.shape == (2,)
    assert numbers("x", [Fraction(1, 2), 10**30]).tolist() == [0.5, 1e30]


OTHER_DATA: list[tuple[Callable[[Any], object], str]] = [
    (lambda x: SeriesCloak(RunningSum(), 2, **CLAIM).release(x), "x"),
    (lambda x: SeriesCloak(RunningSum(), 2, **CLAIM).simulate(x, rng=np.random.default_rng(1)), "x"),
    (lambda x: Stream(RunningSum(), 4, **CLAIM).extend(x), "values"),
    (lambda x: Stream(RunningSum(), 4, **CLAIM).simulate(x, rng=np.random.default_rng(1)), "x"),
    (lambda x: tally([0, 1], HOURS, values=x, most_per_event=1.0), "values"),
]


@pytest.mark.parametrize(("call", "name"), OTHER_DATA)
def test_texts_dates_and_ragged_rows_are_no_data_anywhere(call: Callable[[Any], object], name: str) -> None:
    for x, says in (
        (["1", "2"], "holds texts"),
        (np.array([0, 1], dtype="datetime64[s]"), "holds dates"),
        (RAGGED, "give"),
        ((value for value in X), "give"),
    ):
        with pytest.raises(ReadingError, match=f"^{name}:? {says}"):
            call(x)


@pytest.mark.parametrize("value", ["3", b"3", np.datetime64("2026-10-05"), np.timedelta64(1, "s")])
def test_a_stream_takes_no_text_and_no_date_and_spends_nothing_on_it(value: Any) -> None:
    stream = Stream(RunningSum(), 4, **CLAIM)
    with pytest.raises(ReadingError, match=r"^value holds (texts|dates)"):
        stream.push(value)
    with pytest.raises(ReadingError, match="extend"):
        stream.push(RAGGED)
    assert stream.time == 0


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: convolve(X, ["1"], **CLAIM), "h holds texts"),
    (lambda: convolve(X, RunningSum(), **CLAIM), "h: .*publish"),  # type: ignore[arg-type]
    (lambda: convolve(X, RunningSum, **CLAIM), "h: "),  # type: ignore[arg-type]
    (lambda: convolve(X, [1j], **CLAIM), "h holds complex"),
    (lambda: convolve(X, "x", **CLAIM), "h: "),
    (lambda: convolve(X, [10**400], **CLAIM), "h: "),
    (lambda: SeriesCloak(RunningSum(), 4, **CLAIM, circular="no"), "circular='no'"),  # type: ignore[arg-type]
    (lambda: Coefficients("abc"), "values: "),  # type: ignore[arg-type]
    (lambda: Coefficients(RAGGED), "values: "),
    (lambda: Coefficients(["1"]), "values holds texts"),  # type: ignore[list-item]
    (lambda: Coefficients([1.0], first="a"), "first='a'"),  # type: ignore[arg-type]
    (lambda: Coefficients([1.0], first=0.5), "first=0.5"),  # type: ignore[arg-type]
    (lambda: Coefficients([1.0], label=3), "label=3"),  # type: ignore[arg-type]
    (lambda: Taps(RAGGED), "coefficients"),
    (lambda: SquareRoot(damping="a"), "damping='a'"),  # type: ignore[arg-type]
    (lambda: publish(X, RunningSum(), **CLAIM).band("a"), "confidence='a'"),  # type: ignore[arg-type]
    (lambda: publish(X, RunningSum(), **CLAIM).plot("a"), "ax='a'"),  # type: ignore[arg-type]
    (lambda: Stream(RunningSum(), 4, **CLAIM).push(1).band("a"), "confidence='a'"),  # type: ignore[arg-type]
    (lambda: Bins.between(0, None, every=1), "end=None"),  # type: ignore[arg-type]
    (lambda: HOURS.places(RAGGED), "times"),
    (lambda: tally(X, "hours"), "bins='hours'"),  # type: ignore[arg-type]
    (lambda: tally(X, Bins), r"bins=Bins \(a class\)"),  # type: ignore[arg-type]
    (lambda: tally(X, HOURS, series=RAGGED), "series"),
    (lambda: tally([0], HOURS, persons=["a"], most_per_person="1"), "most_per_person='1'"),  # type: ignore[arg-type]
    (lambda: BoundedSeries(np.ones(3), 1), r"values has shape \(3,\)"),
    (lambda: marginals(RAGGED, order=1, **CLAIM), "rows: "),
    (lambda: MarginalsCloak(2, order=1, **CLAIM).release(RAGGED), "rows: "),
    (lambda: MarginalsCloak(2, sets=3, **CLAIM), "sets=3"),  # type: ignore[arg-type]
    (lambda: MarginalsCloak(2, sets=[0, 1], **CLAIM), "0: "),  # type: ignore[list-item]
    (lambda: MarginalsCloak(2, order=1, **CLAIM).standard_deviation(0), "0: "),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "says"), REFUSED)
def test_an_argument_of_the_wrong_type_is_named(call: Callable[[], object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()


def test_a_refusal_of_large_values_names_the_limit_and_values_below_it_pass() -> None:
    cloak = SeriesCloak(Coefficients([1.0]), 4, **CLAIM, circular=True)
    with pytest.raises(ReadingError, match=r"1\.125e\+15") as refused:
        cloak.release([4e15, 0, 0, 0])
    most = refused.value.values["most"]
    assert isinstance(most, float)
    with pytest.raises(ReadingError, match="too large"):
        cloak.release([most, 0, 0, 0])
    cloak.release([1.125e15, 0, 0, 0])
