"""Each filter against its definition, entry by entry, at every edge."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.series import (
    Coefficients,
    Decay,
    Filter,
    Fourier,
    MovingAverage,
    PowerDecay,
    RunningSum,
    Seasonal,
    SeriesCloak,
    Taps,
    Trend,
    WindowSum,
)
from tests.series.series_kit import TEN, circulant, looped, task_of

sizes = st.integers(1, 25)
widths = st.integers(1, 40)


def outputs_of(filters: Filter, n: int, *, circular: bool = False) -> FloatArray:
    """The matrix that the library applies, without noise: what is made of each unit vector."""
    strategy = Fourier().strategy(task_of(filters, n, circular=circular))
    return np.asarray(strategy.outputs(strategy.applied(np.eye(n, dtype=np.int64)).astype(np.float64))[0].T)


def same(found: FloatArray, expected: FloatArray) -> bool:
    return bool(np.abs(found - expected).max() <= 1e-9 * max(np.abs(expected).max(), 1.0))


@settings(max_examples=20, deadline=None)
@given(n=sizes)
def test_a_running_sum_adds_all_so_far(n: int) -> None:
    assert same(outputs_of(RunningSum(), n), np.tril(np.ones((n, n))))


@settings(max_examples=25, deadline=None)
@given(n=sizes, width=widths)
def test_a_window_adds_the_last_values(n: int, width: int) -> None:
    expected = np.array([[float(t - width < s <= t) for s in range(n)] for t in range(n)])
    assert same(outputs_of(WindowSum(width), n), expected)


@settings(max_examples=25, deadline=None)
@given(n=sizes, width=widths)
def test_a_moving_average_is_the_mean_of_what_there_is(n: int, width: int) -> None:
    found = outputs_of(MovingAverage(width), n)
    for t in range(n):
        values = np.random.default_rng(t).normal(size=n)
        assert found[t] @ values == pytest.approx(values[max(0, t - width + 1) : t + 1].mean(), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(n=sizes, rate=st.floats(1e-3, 0.999))
def test_a_decay_multiplies_by_its_rate_at_each_step(n: int, rate: float) -> None:
    values = np.random.default_rng(n).normal(size=n)
    kept, expected = 0.0, []
    for value in values:
        kept = rate * kept + value
        expected.append(kept)
    assert outputs_of(Decay(rate), n) @ values == pytest.approx(expected, abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(n=sizes, power=st.floats(1e-2, 60))
def test_a_power_decay_divides_by_powers(n: int, power: float) -> None:
    expected = looped(lambda lag: (lag + 1.0) ** -power if lag >= 0 else 0.0, n)
    assert same(outputs_of(PowerDecay(power), n), expected)


@settings(max_examples=25, deadline=None)
@given(n=sizes, width=widths)
def test_a_trend_is_a_centred_mean_of_what_there_is(n: int, width: int) -> None:
    def weight(lag: int) -> float:
        if width % 2:
            return float(abs(lag) <= width // 2)
        return 1.0 if abs(lag) < width // 2 else 0.5 * (abs(lag) == width // 2)

    matrix = looped(weight, n)
    assert same(outputs_of(Trend(width), n), matrix / matrix.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("width", [4, 7, 12])
def test_a_trend_removes_a_cycle_of_its_width_and_keeps_a_line(width: int) -> None:
    n = 5 * width
    times = np.arange(n)
    inner = slice(width, n - width)
    trend = outputs_of(Trend(width), n)
    assert trend[inner] @ np.sin(2 * np.pi * times / width + 0.3) == pytest.approx(0.0, abs=1e-9)
    assert trend[inner] @ (3.0 * times + 1) == pytest.approx((3.0 * times + 1)[inner])


@settings(max_examples=25, deadline=None)
@given(n=sizes, period=st.integers(1, 12), cycles=st.integers(1, 5))
def test_a_seasonal_mean_is_over_the_same_moments_that_there_are(n: int, period: int, cycles: int) -> None:
    found = outputs_of(Seasonal(period, cycles), n)
    for t in range(n):
        moments = [t - k * period for k in range(cycles) if t - k * period >= 0]
        expected = np.zeros(n)
        expected[moments] = 1 / len(moments)
        assert same(found[t], expected)


@settings(max_examples=30, deadline=None)
@given(
    n=sizes,
    values=st.lists(st.floats(-10, 10).map(lambda value: round(value, 3)), min_size=1, max_size=40).filter(any),
    first=st.integers(-30, 30),
)
def test_any_coefficients_are_applied_as_given_or_refused(n: int, values: list[float], first: int) -> None:
    def weight(lag: int) -> float:
        return values[lag - first] if 0 <= lag - first < len(values) else 0.0

    expected = looped(weight, n)
    if expected.any():
        assert same(outputs_of(Coefficients(values, first=first), n), expected)
    else:
        with pytest.raises(InputError):
            outputs_of(Coefficients(values, first=first), n)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), n=st.integers(1, 20))
def test_a_circular_filter_is_the_circulant_matrix(data: st.DataObject, n: int) -> None:
    values = data.draw(st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=n).filter(any))
    assert same(outputs_of(Coefficients(values), n, circular=True), circulant(np.array(values), n))


def test_coefficients_of_a_filter_of_ones_own_that_reach_too_far_do_not_come_around() -> None:
    class Long:
        name = "long"

        def taps(self, n: int) -> Taps:
            return Taps(np.arange(1.0, 4 * n + 1), first=-2 * n)

    found = outputs_of(Long(), 6)
    assert same(found, looped(lambda lag: lag + 13.0, 6))


@pytest.mark.parametrize("name", TEN)
def test_no_coefficient_is_kept_that_no_output_uses(name: str) -> None:
    for n in (1, 2, 5, 30):
        taps = TEN[name].taps(n)
        lags = taps.first + np.arange(len(taps.values))
        assert (np.abs(lags) < n).all()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: WindowSum(0), "width=0: give a whole number, 1 or above"),
        (lambda: MovingAverage(2.5), "width=2.5"),  # type: ignore[arg-type]
        (lambda: Trend(-1), "width=-1"),
        (lambda: Decay(1.0), "rate=1.0"),
        (lambda: Decay(0.0), "rate=0.0"),
        (lambda: Decay(float("nan")), "rate=nan"),
        (lambda: PowerDecay(0.0), "power=0.0"),
        (lambda: PowerDecay(float("inf")), "power=inf"),
        (lambda: Seasonal(0), "period=0"),
        (lambda: Seasonal(7, 0), "cycles=0"),
        (lambda: Coefficients([]), "at least one"),
        (lambda: Coefficients([0.0, 0.0]), "0"),
        (lambda: Coefficients([1.0, float("nan")]), "finite coefficient"),
        (lambda: Coefficients([[1.0], [2.0]]), "finite coefficient"),  # type: ignore[list-item]
        (lambda: Coefficients([1.0], first=9).taps(5), "5 values"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(made: Callable[[], object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        made()


def test_an_average_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="3 values"):
        Taps(np.array([1.0, -1.0]), averaging=True).scale(3)


def test_taps_do_not_change() -> None:
    given_values = np.array([1.0, 2.0])
    taps = Coefficients(given_values).taps(5)
    given_values[0] = 99.0
    assert taps.values.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        taps.values[0] = 3.0


def test_names_tell_filters_apart() -> None:
    names = [one.name for one in (RunningSum(), WindowSum(7), MovingAverage(7), Trend(7), Decay(0.9), PowerDecay(0.5))]
    assert names == ["running-sum", "window-7", "average-7", "trend-7", "decay-0.9", "power-0.5"]
    assert Seasonal(24, 7).name == "seasonal-24x7"
    assert Coefficients([1.0], label="mine").name == "mine"


@pytest.mark.parametrize("width", [10**11, 10**11 + 1])
def test_a_trend_holds_no_more_than_a_series_can_meet_however_wide_it_is(width: int) -> None:
    taps = Trend(width).taps(5)
    assert (taps.first, taps.values.tolist()) == (-4, [1 / 9] * 9)


@pytest.mark.parametrize("value", [1e-200, -1e150])
def test_coefficients_whose_squares_are_no_numbers_are_refused(value: float) -> None:
    with pytest.raises(InputError, match="scale"):
        Coefficients([value, 0.0])


@pytest.mark.parametrize(
    "what",
    [
        Coefficients([1.0, 0.0, 0.0, 0.0, 1.0]),
        Coefficients([1.0], first=4),
        Coefficients([1.0], first=-4),
        WindowSum(5),
        MovingAverage(5),
        Trend(8),
        Seasonal(2, 3),
    ],
    ids=lambda what: what.name,
)
def test_a_filter_that_goes_around_a_circle_more_than_once_is_refused(what: Filter) -> None:
    with pytest.raises(InputError, match="circle of 4"):
        SeriesCloak(what, 4, epsilon=1.0, delta=1e-6, circular=True)
    SeriesCloak(what, 5, epsilon=1.0, delta=1e-6, circular=True)


@pytest.mark.parametrize("first", [-3, -1, 2, 3])
def test_a_filter_that_goes_around_a_circle_once_keeps_all_its_coefficients(first: int) -> None:
    expected = np.roll(np.eye(4), first, axis=0)
    assert same(outputs_of(Coefficients([1.0], first=first), 4, circular=True), expected)
