"""Filters: what each one computes, which taps a series needs, and what is refused."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import InputError
from cloakwork.series import (
    Coefficients,
    Decay,
    Filter,
    MovingAverage,
    PowerDecay,
    RunningSum,
    Seasonal,
    SeriesCloak,
    Trend,
    WindowSum,
    parse_filters,
)
from tests.series.series_kit import CLAIM, dense

LENGTHS = [1, 2, 5, 30]


@pytest.mark.parametrize("n", LENGTHS)
def test_each_filter_is_its_definition(n: int) -> None:
    t, s = np.arange(n)[:, None], np.arange(n)[None, :]
    lag = t - s
    past = lag >= 0
    definitions: list[tuple[Filter, np.ndarray]] = [
        (RunningSum(), past * 1.0),
        (WindowSum(4), past & (lag < 4)),
        (Decay(0.7), np.where(past, 0.7 ** np.maximum(lag, 0), 0.0)),
        (PowerDecay(0.5), np.where(past, (np.maximum(lag, 0) + 1.0) ** -0.5, 0.0)),
        (MovingAverage(4), past & (lag < 4)),
        (Trend(5), np.abs(lag) <= 2),
        (Trend(4), (np.abs(lag) <= 2) * np.where(np.abs(lag) == 2, 0.5, 1.0)),
        (Seasonal(3, 2), past & (lag % 3 == 0) & (lag < 6)),
    ]
    for made, expected in definitions:
        whole = expected.astype(float)
        if made.averaging:
            whole /= whole.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(dense(made, n), whole, atol=1e-15, err_msg=made.name)
        np.testing.assert_allclose(made.cut(n).scale(n)[0] > 0, True)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.lists(st.floats(-3, 3), min_size=1, max_size=20), st.integers(-15, 15))
def test_a_cut_keeps_the_taps_that_meet_a_value(n: int, values: list[float], first: int) -> None:
    met = {first + k: value for k, value in enumerate(values) if abs(first + k) < n}
    if not any(abs(value) >= 1e-100 for value in met.values()):
        with pytest.raises(InputError):
            Coefficients(values, first).cut(n)
        return
    cut = Coefficients(values, first).cut(n)
    assert dict(enumerate(cut.values.tolist(), start=cut.first)) == met


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: WindowSum(0), "width=0"),
        (lambda: MovingAverage(1.5), "width=1.5"),  # type: ignore[arg-type]
        (lambda: Trend(99_999_999_999), "100,000,000,000|99,999,999,999"),
        (lambda: Seasonal(10**9, 4), "taps"),
        (lambda: Decay(1.0), "rate=1.0"),
        (lambda: PowerDecay(0.0), "power"),
        (lambda: Coefficients([]), "taps"),
        (lambda: Coefficients([0.0]), "taps"),
        (lambda: Coefficients([[1.0]]), "taps"),
        (lambda: Coefficients([np.nan]), "taps"),
        (lambda: Coefficients(["1"]), "taps"),
        (lambda: Coefficients([1e101]), "1e-100 to 1e"),
        (lambda: Coefficients([1.0], first=0.5), "first"),  # type: ignore[arg-type]
        (lambda: Coefficients([1.0], label=3), "name=3"),  # type: ignore[arg-type]
        (lambda: SeriesCloak(Coefficients([1.0, -1.0], averaging=True), 3, **CLAIM), "averaging"),  # type: ignore[call-arg]
        (lambda: Filter("x", [1.0, -1.0], averaging=True).scale(3), "nothing to average"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(made: Callable[[], object], says: str) -> None:
    with pytest.raises((InputError, TypeError), match=says):
        made()


@pytest.mark.parametrize(
    "text",
    ["", "window", "window:x", "window:0", "nothing:3", "seasonal:1x2x3", "a.csv", "taps:", "taps:1@x", "decay:1"],
)
def test_a_text_that_is_not_a_filter_is_refused_by_its_parameter(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_filters([text])
    assert refused.value.values["parameter"] == "filters"
