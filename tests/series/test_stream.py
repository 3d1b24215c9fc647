"""Streams: what is published moment by moment, what it costs, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, linalg

from cloakwork._checks import FloatArray
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.privacy import largest_mu, simulated_words
from cloakwork.series import (
    Coefficients,
    Decay,
    Filter,
    Fourier,
    MovingAverage,
    PowerDecay,
    RunningSum,
    SeriesCloak,
    SquareRoot,
    Stream,
    Trend,
    WindowSum,
)
from cloakwork.series.causal_filter import History, constant_ratio
from cloakwork.series.mechanisms import forgets, minimum_phase
from tests.series.stream_kit import CASES, NAMES, dense, ratio, stream


@pytest.fixture
def same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushing draws what simulating with seed 5 does."""
    monkeypatch.setattr("cloakwork.series.stream.private_words", simulated_words(np.random.default_rng(5)))


@pytest.mark.parametrize(("what", "horizon", "band"), CASES, ids=NAMES)
def test_without_its_noise_the_output_is_the_filter(what: Filter, horizon: int | None, band: int | None) -> None:
    one = stream(what, horizon, band)
    x = np.random.default_rng(1).integers(-1000, 1000, size=(2, 150))
    x[1] = 0
    runs = [one.simulate(row, rng=np.random.default_rng(3)).values for row in x]
    np.testing.assert_allclose(runs[0] - runs[1], dense(what, 150) @ x[0], atol=2e-8)


@pytest.mark.usefixtures("same_words")
@pytest.mark.parametrize(("what", "horizon", "band"), CASES, ids=NAMES)
def test_pushing_value_by_value_is_simulating_at_once(what: Filter, horizon: int | None, band: int | None) -> None:
    one = stream(what, horizon, band)
    x = np.random.default_rng(1).integers(0, 100, size=200)
    simulated = one.simulate(x, rng=np.random.default_rng(5))
    moments = [one.push(int(value)) for value in x[:100]]
    rest = one.extend(x[100:])
    np.testing.assert_allclose([moment.value for moment in moments], simulated.values[:100], atol=1e-7)
    np.testing.assert_allclose(rest.values, simulated.values[100:], atol=1e-7)
    np.testing.assert_array_equal(rest.standard_deviation, simulated.standard_deviation[100:])
    assert [moment.time for moment in moments] == list(range(100))
    assert one.time == 200


@pytest.mark.usefixtures("same_words")
def test_an_output_does_not_depend_on_what_comes_later() -> None:
    x = np.arange(60)
    first = stream(RunningSum(), 60).simulate(x, rng=np.random.default_rng(1)).values
    x[40:] = 7
    second = stream(RunningSum(), 60).simulate(x, rng=np.random.default_rng(1)).values
    np.testing.assert_allclose(first[:40], second[:40], atol=1e-9)
    assert np.abs(first[40:] - second[40:]).min() > 1


@pytest.mark.parametrize(("what", "horizon", "band"), CASES, ids=NAMES)
def test_the_stated_variances_are_those_of_the_dense_matrices(
    what: Filter, horizon: int | None, band: int | None
) -> None:
    one = stream(what, horizon, band)
    n = 150
    strategy = linalg.toeplitz(np.pad(one.weights, (0, n))[:n], np.zeros(n))
    rows = np.linalg.solve(strategy.T, dense(what, n).T).T
    np.testing.assert_allclose((rows**2).sum(axis=1) * (ratio(one) ** 2 + 1 / 12), one.variances[:n], rtol=1e-7)


@pytest.mark.parametrize(
    ("what", "horizon"),
    [(RunningSum(), 64), (WindowSum(24), 64), (Decay(0.9), 64), (MovingAverage(7), 40)],
)
def test_the_measured_error_is_within_3_percent(what: Filter, horizon: int) -> None:
    one = stream(what, horizon)
    errors = one.simulate(np.zeros((8_000, horizon)), rng=np.random.default_rng(2)).values
    assert float((errors**2).mean()) == pytest.approx(one.expected_mse, rel=0.03)
    late = (errors[:, -1] ** 2).mean()
    assert float(late) == pytest.approx(one.standard_deviation(horizon - 1) ** 2, rel=0.06)


@pytest.mark.usefixtures("same_words")
@pytest.mark.parametrize("what", [Decay(0.8), WindowSum(6)])
def test_an_endless_stream_keeps_its_error(what: Filter) -> None:
    one = stream(what, None)
    values = one.extend(np.zeros(30_000)).values
    for part in np.split(values[10_000:], 2):
        assert float((part**2).mean()) == pytest.approx(one.expected_mse, rel=0.1)


@pytest.mark.parametrize(
    "what",
    [Decay(0.9), WindowSum(24), MovingAverage(7), Coefficients([1.0, 3.0]), Coefficients([1.0, 2.0, 1.0])],
)
def test_in_the_long_run_a_stream_is_as_good_as_the_best_on_a_circle(what: Filter) -> None:
    """Against the integral of |H| over the circle, by another library's quadrature."""
    taps = what.taps(1 << 14).values
    corners = np.linspace(0, np.pi, 25)[1:-1]
    mean = integrate.quad(
        lambda t: float(abs(np.polyval(taps[::-1], np.exp(1j * t)))), 0, np.pi, points=corners, limit=500
    )
    ideal = (mean[0] / np.pi / largest_mu(1.0, 1e-6)) ** 2
    assert 1 - 1e-6 < stream(what, None).expected_mse / ideal < 1.005


def test_a_short_band_costs_more_and_remembers_less() -> None:
    whole, cut = stream(RunningSum(), 1024), stream(RunningSum(), 1024, 128)
    assert whole.expected_mse < cut.expected_mse < 1.5 * whole.expected_mse
    assert cut.band == 128
    assert cut.memory == 4 * 128
    assert whole.memory == 4 * 1024


def test_streams_have_at_most_the_error_of_the_circular_mechanism() -> None:
    for what in (RunningSum(), WindowSum(24), Decay(0.9)):
        one = stream(what, 512)
        circular = SeriesCloak(what, 512, epsilon=1.0, delta=1e-6, mechanism=Fourier())
        assert one.expected_mse <= circular.expected_mse * 1.001
        assert one.batch_mse <= circular.expected_mse


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (RunningSum(), "running-sum"),
        (PowerDecay(1.0), "power-1"),
        (WindowSum(100_000), "window-100000"),
        (Trend(5), "2 values ahead"),
    ],
)
def test_filters_that_an_endless_stream_cannot_serve_are_refused(what: Filter, says: str) -> None:
    with pytest.raises(InputError, match=says):
        stream(what, None)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"horizon": 0}, InputError, "horizon=0"),
        ({"band": 0}, InputError, "band=0"),
        ({"horizon": None, "band": 100_000}, InputError, "65536"),
        ({"contribution": 1.5}, CalibrationError, r"contribution=1\.5"),
        ({"epsilon": -1}, CalibrationError, "epsilon=-1"),
        ({"delta": 0}, CalibrationError, "delta=0"),
    ],
)
def test_arguments_out_of_range_are_refused(options: dict[str, object], error: type[Exception], says: str) -> None:
    given: dict[str, object] = {"horizon": 10, "epsilon": 1.0, "delta": 1e-6} | options
    with pytest.raises(error, match=says):
        Stream(Decay(0.5), given.pop("horizon"), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [31.4159, float("nan"), float("inf"), "none", None, 3e18, 31 << 60])
def test_a_value_that_cannot_be_taken_is_refused_unseen_and_unspent(value: object) -> None:
    one = stream(RunningSum(), 10)
    with pytest.raises(ReadingError) as problem:
        one.push(value)  # type: ignore[arg-type]
    assert "31" not in str(problem.value).replace(f"{2.0**61 / np.abs(one.weights).sum():.3g}", "")
    assert one.time == 0


def test_lists_that_cannot_be_taken_are_refused() -> None:
    one = stream(RunningSum(), 10)
    for values, says in (
        ([1.0, 0.5], r"values\[1\]"),
        ([[1, 2]], r"\(1, 2\)"),
        ([], "values has shape"),
        (7, "values has shape"),
    ):
        with pytest.raises(ReadingError, match=says):
            one.extend(values)
    with pytest.raises(ReadingError, match="11 values"):
        one.simulate(np.zeros(11), rng=np.random.default_rng(1))
    with pytest.raises(CalibrationError, match="generator"):
        one.simulate(np.zeros(10), rng=1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="time=10"):
        one.standard_deviation(10)
    assert one.time == 0


def test_whole_floats_and_numpy_numbers_are_whole() -> None:
    one = stream(RunningSum(), 10)
    for value in (3.0, np.float64(3), np.int32(3), -3, True):
        one.push(value)  # type: ignore[arg-type]
    assert one.time == 5


def test_an_explanation_shows_stream_and_batch_together() -> None:
    one = stream(RunningSum(), 1024, 64)
    text = str(one.explain())
    for number in (math.sqrt(one.expected_mse), math.sqrt(one.batch_mse), math.sqrt(one.variances[-1])):
        assert f"{number:.4g}" in text
    assert f"{one.expected_mse / one.batch_mse:.3g} times" in text
    assert "cost nothing" in str(stream(Decay(0.9), None).explain())
    assert repr(one) == "Stream(running-sum, horizon=1024, epsilon=1, delta=1e-06, time=0)"


def test_the_band_of_a_moment_is_that_of_the_normal_law() -> None:
    moment = stream(RunningSum(), 4).push(2)
    assert moment.band() == pytest.approx(1.959964 * moment.standard_deviation, rel=1e-6)
    with pytest.raises(InputError, match=r"confidence=1\.5"):
        moment.band(1.5)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=12).filter(lambda w: w[0] != 0))
def test_weights_forget_when_all_their_zeros_are_beyond_the_circle(weights: list[int]) -> None:
    zeros = np.abs(np.roots(weights[::-1]))
    closest = float(np.min(np.abs(zeros - 1), initial=1.0))
    if closest > 0.05:
        assert forgets(np.array(weights)) == bool((zeros > 1).all())
    elif closest < 1e-9:
        assert not forgets(np.array(weights))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=12).filter(any))
def test_minimum_phase_keeps_all_sizes_and_moves_zeros_out(values: list[int]) -> None:
    given_, found = np.array(values, dtype=float), minimum_phase(np.array(values, dtype=float))
    angles = np.exp(1j * np.linspace(0, np.pi, 50))
    before, after = (np.abs(np.polyval(one[::-1], angles)) for one in (given_, found))
    np.testing.assert_allclose(after, before, atol=0.02 * before.max())
    assert (np.abs(np.roots(found[::-1])) > 0.95).all()


def test_a_strategy_for_streams_refuses_what_is_not_one_filter_looking_back() -> None:
    for mechanism in (SquareRoot(), SquareRoot(5)):
        with pytest.raises(InputError, match="causal"):
            SeriesCloak(Trend(5), 100, epsilon=1.0, delta=1e-6, mechanism=mechanism)
    with pytest.raises(InputError, match=r"damping=1\.5"):
        SquareRoot(5, 1.5)


@pytest.mark.parametrize("reach", [1, 2, 7])
def test_a_history_is_the_last_numbers_newest_first(reach: int) -> None:
    history = History(reach, np.int64)
    for number in range(100):
        history.add(number)
        assert history.recent.tolist() == list(range(number, max(number - reach, -1), -1))
    assert history.size == 2 * reach


@pytest.mark.parametrize(
    ("values", "horizon", "expected"),
    [
        ([1.0, 1.0, 1.0], 3, 1.0),
        ([1.0, 1.0, 1.0], 4, None),
        ([2.0, 1.0, 0.5], 3, 0.5),
        ([2.0, 1.0, 0.6], 3, None),
        ([0.0, 1.0, 0.5], 3, None),
        ([1.0], 1, 1.0),
        ([1.0], 2, None),
        (0.5 ** np.arange(61.0), None, 0.5),
    ],
)
def test_a_filter_with_a_constant_ratio_is_known(
    values: list[float] | FloatArray, horizon: int | None, expected: float | None
) -> None:
    assert constant_ratio(np.asarray(values), horizon) == expected
