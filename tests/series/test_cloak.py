"""The cloak of a series: one release only, what counts as a neighbour, shapes, and refusals that tell nothing."""

import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cloakwork.errors import BudgetError, CalibrationError, InputError, ReadingError
from cloakwork.privacy import largest_mu
from cloakwork.series import (
    Coefficients,
    Filter,
    Fourier,
    Mechanism,
    Published,
    RunningSum,
    SeriesCloak,
    SquareRoot,
    WindowSum,
    convolve,
    publish,
)
from papers.paper_laplace import PaperLaplace
from tests.forking import error_in_fork, needs_fork
from tests.series.series_kit import CLAIM, TEN

IDENTITY = Coefficients([1.0])
COUNTS = np.array([3, 0, 4, 1, 7, 0, 2, 5])


def moved(cloak: SeriesCloak, x: np.ndarray, y: np.ndarray) -> int:
    """How many steps apart two inputs are released: with the same noise, the noise goes away."""
    first, second = (cloak.simulate(values, rng=np.random.default_rng(1)).values for values in (x, y))
    steps = (first - second) / cloak.step
    assert np.abs(steps - np.rint(steps)).max() < 0.1
    return int(np.abs(np.rint(steps)).sum())


@pytest.mark.parametrize("mechanism", [Fourier(), SquareRoot(), PaperLaplace()])
def test_a_cloak_releases_once(mechanism: Mechanism) -> None:
    cloak = SeriesCloak(RunningSum(), 8, **CLAIM, mechanism=mechanism)
    assert cloak.release(COUNTS).values.shape == (8,)
    with pytest.raises(BudgetError, match="0 of 1 left"):
        cloak.release(COUNTS)
    assert cloak.simulate(COUNTS, rng=np.random.default_rng(1)).values.shape == (8,)


def test_what_is_refused_spends_nothing() -> None:
    cloak = SeriesCloak(RunningSum(), 8, **CLAIM)
    for bad in ([1] * 7, [0.5] * 8, [np.nan] * 8, ["x"] * 8):
        with pytest.raises(ReadingError):
            cloak.release(bad)
    cloak.simulate(COUNTS, rng=np.random.default_rng(0))
    cloak.release(COUNTS)


def test_many_threads_release_once() -> None:
    cloak = SeriesCloak(RunningSum(), 8, **CLAIM)
    done: list[Published] = []

    def work() -> None:
        try:
            done.append(cloak.release(COUNTS))
        except BudgetError:
            return

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1


def test_a_cloak_cannot_be_copied_to_be_spent_again() -> None:
    cloak = SeriesCloak(RunningSum(), 8, **CLAIM)
    for twin in (pickle.loads(pickle.dumps(cloak)), copy.deepcopy(cloak)):  # noqa: S301 - our own
        with pytest.raises(BudgetError, match="0 of 1 left"):
            twin.release(COUNTS)
    published = copy.copy(cloak).release(COUNTS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(published)).values, published.values)  # noqa: S301 - our own
    with pytest.raises(BudgetError, match="0 of 1 left"):
        cloak.release(COUNTS)


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_cannot_release() -> None:
    cloak = SeriesCloak(RunningSum(), 8, **CLAIM)
    assert error_in_fork(lambda: cloak.release(COUNTS)) == "BudgetError"


def test_a_cloak_does_not_change() -> None:
    cloak = SeriesCloak(RunningSum(), 8, **CLAIM)
    for name in ("epsilon", "noise", "strategy", "contribution", "touched", "step", "claim", "_ledger"):
        with pytest.raises(AttributeError, match="cloak"):
            setattr(cloak, name, None)
    with pytest.raises(ValueError, match="read-only"):
        cloak.strategy.weights[0] = 0
    published = cloak.release(COUNTS)
    with pytest.raises(ValueError, match="read-only"):
        published.values[0] = 0.0


def test_no_two_releases_share_noise_and_simulations_repeat() -> None:
    first, second = (publish(COUNTS, RunningSum(), **CLAIM).values for _ in range(2))
    assert not np.isin(first, second).all()
    cloak = SeriesCloak(RunningSum(), 8, **CLAIM)
    again = [cloak.simulate(COUNTS, rng=np.random.default_rng(5)).values for _ in range(2)]
    assert np.array_equal(again[0], again[1])
    with pytest.raises(CalibrationError, match="generator"):
        cloak.simulate(COUNTS, rng=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "units"),
    [
        ({}, 1),
        ({"contribution": 5}, 5),
        ({"step": 0.1, "touched": 0}, 10),
        ({"step": 0.1, "touched": 3}, 13),
        ({"step": 0.1}, 18),
        ({"step": 0.1, "series": 2}, 26),
        ({"contribution": 0.3, "step": 0.1, "touched": 1}, 4),
        ({"contribution": 0.25, "step": 0.1, "touched": 1}, 4),  # 2.5 steps count as 3
        ({"contribution": 0.5, "step": 2.0, "touched": 1}, 2),
    ],
)
def test_a_contribution_is_counted_in_steps_with_one_more_for_each_place(
    arguments: dict[str, float], units: int
) -> None:
    cloak = SeriesCloak(IDENTITY, 8, **CLAIM, **arguments)  # type: ignore[arg-type]
    assert cloak.units == units == cloak.claim.units


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    step=st.sampled_from([0.1, 1.0, 0.3, 1 / 3, 0.7071, 1.00000001]),
    ratio=st.sampled_from([0.5, 0.999, 0.99999999, 1.0, 1.00000001, 2.5, 7.0]),
    touched=st.integers(1, 4),
    magnitude=st.sampled_from([0, 20, 35, 44]),
)
def test_no_neighbours_are_more_steps_apart_than_claimed(
    data: st.DataObject, step: float, ratio: float, touched: int, magnitude: int
) -> None:
    """Values next to where they are rounded up or down, however large, that move by the contribution in all."""
    cloak = SeriesCloak(IDENTITY, 4, **CLAIM, contribution=ratio * step, step=step, touched=touched)
    base = data.draw(st.lists(st.integers(-3, 3), min_size=4, max_size=4))
    edge = data.draw(st.lists(st.sampled_from([0.5, 0.5 - 1e-9, 0.5 + 1e-9, 0.0]), min_size=4, max_size=4))
    x = (np.array(base) + (1 << magnitude) + np.array(edge)) * step
    shares = np.zeros(4)
    shares[:touched] = 1 / touched
    sign = np.array(data.draw(st.lists(st.sampled_from([-1, 1]), min_size=4, max_size=4)))
    y = x + sign * shares * (cloak.contribution * data.draw(st.sampled_from([1.0, 1 - 1e-12, 1 - 1e-3])))
    assume(np.abs(y - x).sum() <= cloak.contribution)  # floats may have made it more
    assert moved(cloak, x, y) <= cloak.units


def test_rounding_at_many_places_is_paid_for() -> None:
    """All 8 values cross an edge by a hair: a contribution of 0.08 moves 8 steps, which only `touched` covers."""
    x = np.arange(8) + 0.495
    y = x + 0.01
    cloak = SeriesCloak(IDENTITY, 8, **CLAIM, contribution=0.08, step=1.0)
    assert moved(cloak, x, y) == 8 <= cloak.units == 9
    careless = SeriesCloak(IDENTITY, 8, **CLAIM, contribution=0.08, step=1.0, touched=1)
    assert careless.units == 2  # which says that one event changes one value only


@pytest.mark.parametrize("base", [10.0, 1e6, 1e9, 1e12])
def test_whole_numbers_are_whole_however_large(base: float) -> None:
    """Fractions that are let through would be rounded at many places at once, which nobody has paid for."""
    cloak = SeriesCloak(IDENTITY, 8, **CLAIM)
    x = np.full(8, base) + 0.49
    with pytest.raises(ReadingError, match="8 values"):
        cloak.release(x)
    cloak.release(np.full(8, base))


@pytest.mark.parametrize("base", [1.0, 1e3, 1e6, 1e8])
def test_multiples_of_a_step_are_known_by_a_hair(base: float) -> None:
    x = np.array([base * 0.1 * 3, base * 0.3, base * 0.7, base * (0.1 + 0.2)])
    made = {"contribution": 1.0, "step": 0.1, "touched": 0}
    SeriesCloak(IDENTITY, 4, **CLAIM, **made).release(x)  # type: ignore[arg-type]
    with pytest.raises(ReadingError, match="touched=0"):
        SeriesCloak(IDENTITY, 4, **CLAIM, **made).release(x + 0.0002)  # type: ignore[arg-type]


def test_a_contribution_is_over_all_series_together() -> None:
    cloak = SeriesCloak(RunningSum(), 8, **CLAIM, contribution=2, series=3)
    assert cloak.units == 2
    assert "in all 3 series together" in str(cloak.explain())


@pytest.mark.parametrize(
    ("filters", "given_shape", "shape", "spread"),
    [
        (RunningSum(), (8,), (8,), (8,)),
        (RunningSum(), (1, 8), (1, 8), (8,)),
        (RunningSum(), (2, 8), (2, 8), (8,)),
        ([RunningSum(), WindowSum(3)], (8,), (2, 8), (2, 8)),
        ([RunningSum(), WindowSum(3)], (3, 8), (2, 3, 8), (2, 8)),
        ([RunningSum()], (8,), (1, 8), (1, 8)),
    ],
)
def test_shapes_follow_what_was_given(
    filters: Filter | list[Filter], given_shape: tuple[int, ...], shape: tuple[int, ...], spread: tuple[int, ...]
) -> None:
    published = publish(np.ones(given_shape), filters, **CLAIM)
    assert published.values.shape == shape
    assert published.standard_deviation.shape == spread == published.band().shape


def test_what_is_published_says_what_it_meets() -> None:
    published = convolve(COUNTS, [0.5, 0.5], **CLAIM)
    assert (published.epsilon, published.delta) == (1.0, 1e-6)
    assert published.expected_mse == published.cloak.expected_mse > published.cloak.ideal_mse > 0
    assert published.expected_mse == pytest.approx((published.standard_deviation**2).mean())
    assert published.spectral_shape > 0
    assert published.band(0.95) == pytest.approx(1.959964 * published.standard_deviation, rel=1e-6)
    for confidence in (0, 1, -0.5, 2):
        with pytest.raises(InputError, match="confidence"):
            published.band(confidence)
    assert "0.5" not in repr(published.cloak)
    assert repr(published.cloak) == "SeriesCloak(filter, n=8, epsilon=1, delta=1e-06)"


@pytest.mark.parametrize("circular", [True, False])
@pytest.mark.parametrize("mechanism", [Fourier(), PaperLaplace()])
def test_what_is_published_is_the_filter_of_the_values(circular: bool, mechanism: Mechanism) -> None:
    """With values so large that the noise is a hair, and steps of many units."""
    n, h = 9, np.array([1.0, -0.5, 0.25])
    x = np.random.default_rng(3).integers(0, 10**7, size=n)
    cloak = SeriesCloak(Coefficients(h), n, **CLAIM, circular=circular, mechanism=mechanism)
    found = cloak.release(x).values
    expected = [sum(h[k] * (x[(t - k) % n] if circular or t >= k else 0) for k in range(3)) for t in range(n)]
    assert np.abs(found - expected).max() < 12 * np.sqrt(cloak.variances.max())
    assert np.abs(np.array(expected)).max() > 1e5 * np.sqrt(cloak.variances.max())


def test_explain_says_what_matters() -> None:
    text = str(SeriesCloak(RunningSum(), 8, **CLAIM, step=0.1, touched=2).explain())
    for part in ("up to 2 of them", "e^1 = ", "event level", "user level", "multiples of 0.1", "paper"):
        assert part in text
    assert "circle" in str(SeriesCloak(RunningSum(), 8, **CLAIM, circular=True).explain())
    assert "PaperLaplace" in str(SeriesCloak(RunningSum(), 8, **CLAIM, mechanism=PaperLaplace()).explain())
    assert "mu" not in str(SeriesCloak(RunningSum(), 8, **CLAIM, mechanism=PaperLaplace()).explain()).split()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": 0}, "epsilon=0"),
        ({"epsilon": float("inf")}, "epsilon=inf"),
        ({"delta": 0}, "delta=0"),
        ({"delta": 1.5}, "delta=1.5"),
        ({"contribution": 0}, "contribution=0"),
        ({"contribution": -2}, "contribution=-2"),
        ({"contribution": 1.5}, r"contribution=1\.5"),
        ({"touched": 1}, "touched without step"),
        ({"step": 0.1, "touched": -1}, "touched=-1"),
        ({"step": 0.1, "touched": 9}, "from 0 to 8"),
        ({"step": 0.1, "touched": 1.5}, "touched=1.5"),
        ({"step": 0.1, "touched": True}, "touched=True"),
        ({"epsilon": 400.0, "delta": 1e-9}, "epsilon=400"),
    ],
)
def test_claims_that_mean_nothing_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(CalibrationError, match=says):
        SeriesCloak(RunningSum(), 8, **({**CLAIM} | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"n": 0}, "n=0"),
        ({"series": 0}, "series=0"),
        ({"step": -1.0}, "step=-1.0"),
        ({"filters": []}, "filters"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(change: dict[str, object], says: str) -> None:
    arguments: dict[str, object] = {"filters": RunningSum(), "n": 8, **CLAIM}
    with pytest.raises(InputError, match=says):
        SeriesCloak(**(arguments | change))  # type: ignore[arg-type]


SECRET = 87654321.123


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([SECRET] * 8, "8 values"),
        ([1, 2, 3, SECRET, 5, 6, 7, 8], "place 3"),
        ([SECRET] * 7, r"\(7,\)"),
        ([[SECRET] * 8] * 2, "1 series of 8 values"),
        ([[[SECRET] * 8]], "1 series"),
        (SECRET, "8"),
        ([SECRET * 1e40] * 8, r"values below [\d.]+e\+14"),
        ([SECRET] * 7 + [np.nan], r"x\[7\]"),
        ([SECRET] * 7 + [-np.inf], r"x\[7\]"),
        ([f"{SECRET} secret"] * 8, "texts"),
        ([SECRET, None, [SECRET]], "array of numbers"),
        ([87654321 * 10**400] * 8, "array of numbers"),
    ],
)
def test_values_that_cannot_be_published_are_refused_and_not_shown(values: object, says: str) -> None:
    cloak = SeriesCloak(RunningSum(), 8, **CLAIM)
    with pytest.raises(ReadingError, match=says) as caught:
        cloak.release(values)  # type: ignore[arg-type]
    chain: BaseException | None = caught.value
    while chain is not None:
        assert "8765" not in repr(chain)
        assert "8765" not in repr(getattr(chain, "values", ""))
        chain = chain.__context__


@pytest.mark.parametrize("mechanism", [Fourier(), PaperLaplace()])
def test_values_up_to_the_limit_are_exact_and_beyond_it_refused(mechanism: Mechanism) -> None:
    """No sum of products ever reaches 2^63."""
    cloak = SeriesCloak(TEN["any"], 8, **CLAIM, mechanism=mechanism)
    rows = np.abs(cloak.strategy.weights).sum(axis=-1).max()
    limit = int(min(2.0**61 / float(rows), 2.0**50))
    assert limit > 2**28
    x = np.full(8, limit - limit // 1000)
    assert np.isfinite(cloak.simulate(x, rng=np.random.default_rng(1)).values).all()
    exact = cloak.strategy.applied(x[None])
    by_integers = np.array([cloak.strategy.applied(row[None])[0] for row in np.eye(8, dtype=np.int64)], dtype=object)
    assert exact[0].tolist() == (by_integers * x[:, None].astype(object)).sum(axis=0).tolist()
    with pytest.raises(ReadingError, match="too large"):
        cloak.simulate(x * 2, rng=np.random.default_rng(1))


def test_steps_so_fine_that_divisions_round_are_refused() -> None:
    cloak = SeriesCloak(IDENTITY, 8, **CLAIM, step=1e-3)
    cloak.simulate(np.full(8, 1e9), rng=np.random.default_rng(1))
    with pytest.raises(ReadingError, match="larger step"):
        cloak.simulate(np.full(8, 1e12), rng=np.random.default_rng(1))


@pytest.mark.parametrize("x", [3.0, np.zeros((2, 2, 8)), np.zeros((0, 8)), np.zeros((3, 0)), []])
def test_what_is_no_series_is_refused(x: object) -> None:
    with pytest.raises(InputError, match="x has shape"):
        publish(x, RunningSum(), **CLAIM)  # type: ignore[arg-type]


@pytest.mark.parametrize("h", [[], np.ones(9), np.ones((2, 3))])
def test_a_kernel_is_no_longer_than_the_circle(h: object) -> None:
    with pytest.raises(InputError, match="h has shape"):
        convolve(COUNTS, h, **CLAIM)  # type: ignore[arg-type]


@pytest.mark.parametrize("filters", [RunningSum(), TEN["trend"], TEN["any"]])
def test_every_verb_spends_the_claim_it_was_given(filters: Filter) -> None:
    published = publish(COUNTS, filters, epsilon=2.0, delta=1e-4, contribution=3)
    assert (published.epsilon, published.delta, published.cloak.units) == (2.0, 1e-4, 3)
    assert published.cloak.ideal_mse == pytest.approx(
        published.cloak.strategy.ideal * 9 / largest_mu(2.0, 1e-4) ** 2, rel=1e-12
    )


def test_values_said_to_be_multiples_are_so_near_that_no_change_gains_a_unit() -> None:
    """A thousand places, each a little off its multiple, would together be more units apart than stated."""
    cloak = SeriesCloak(RunningSum(), 1100, epsilon=1.0, delta=1e-6, contribution=1024, step=1.0, touched=0)
    values = np.full(1100, 2.0**40) + 2.0**-11
    with pytest.raises(ReadingError, match="multiples"):
        cloak.release(values)


def test_a_picture_has_a_line_and_a_band_for_each_filter_and_series() -> None:
    cloak = SeriesCloak([RunningSum(), WindowSum(3)], 8, series=2, **CLAIM)
    axes = cloak.simulate(np.ones((2, 8)), rng=np.random.default_rng(1)).plot()
    assert len(axes.lines) == len(axes.collections) == 4
    assert axes.get_legend_handles_labels()[1][0] == "running-sum, series 0"
