"""Releases: the guarantee, the noise, what is published, the budget, and what is refused unseen."""

import contextlib
import copy
import itertools
import math
import pickle
from fractions import Fraction
from threading import Thread
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from cloakwork.errors import BudgetError, CloakworkError, InputError, ReadingError
from cloakwork.privacy import largest_mu
from cloakwork.series import (
    Contribution,
    RunningSum,
    SeriesCloak,
    Stream,
    convolve,
    publish,
)
from tests.forking import error_in_fork, needs_fork
from tests.series.series_kit import CLAIM, TEN, circulant, dense, released_matrix

SECRET = 87654321


def cloak(**options: Any) -> SeriesCloak:
    return SeriesCloak(RunningSum(), 8, **{**CLAIM, **options})


@pytest.mark.parametrize("claim", [(0.1, 1e-9), (1.0, 1e-6), (20.0, 1e-6)])
@pytest.mark.parametrize("name", TEN)
def test_no_unit_moves_the_release_further_than_the_guarantee_allows(name: str, claim: tuple[float, float]) -> None:
    """In exact fractions, for a change at every place."""
    units = 3
    made = SeriesCloak(TEN[name], 24, epsilon=claim[0], delta=claim[1], contribution=units)
    sigma, allowed = Fraction(made.noise.table.ratio), Fraction(largest_mu(*claim))
    squares = [
        sum(int(v) ** 2 for v in column) * units**2 / sigma**2 for column in released_matrix(made.strategy, 24).T
    ]
    assert max(squares) <= Fraction(made.noise.mu) ** 2 <= allowed**2
    assert made.noise.mu >= allowed * (1 - Fraction(1, 10**6))
    assert claim[1] * (1 - 1e-6) <= made.noise.delta(claim[0]) <= claim[1] * (1 + 1e-9)


def test_dp_accounting_agrees_and_a_fifth_less_noise_would_break_the_guarantee() -> None:
    made = SeriesCloak(RunningSum(), 24, **CLAIM, contribution=Contribution(3, per_bin=1, separation=8))
    moves = released_matrix(made.strategy, 24).astype(float)
    worst = max(
        float(np.linalg.norm(moves[:, list(k)].sum(axis=1))) for k in itertools.combinations(range(0, 24, 8), 3)
    )
    deltas = [
        pld.from_gaussian_mechanism(
            factor * made.noise.table.ratio, sensitivity=worst, value_discretization_interval=1e-4
        ).get_delta_for_epsilon(1.0)
        for factor in (1.0, 0.8)
    ]
    assert 0.97e-6 < deltas[0] < 1.01e-6
    assert deltas[1] > 5e-6


@pytest.mark.parametrize("name", ["running sum", "average", "trend", "any"])
def test_the_measured_error_is_the_stated_one(name: str) -> None:
    made = SeriesCloak(TEN[name], 64, **CLAIM)
    x = np.random.default_rng(1).integers(0, 9, (6000, 64))
    error = made.simulate(x, rng=np.random.default_rng(1)).values - x @ dense(TEN[name], 64).T
    assert (error**2).mean() == pytest.approx(made.expected_mse, rel=0.03)
    assert (error**2).mean(axis=0) == pytest.approx(made.variances[0], rel=0.15)
    assert made.without_noise(x[0])[0, 0] == pytest.approx(dense(TEN[name], 64) @ x[0], abs=1e-6)


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_noise_that_is_a_fifth_off_would_be_noticed(factor: float) -> None:
    made = cloak(series=4000)
    values = made.release(np.zeros((4000, 8))).values
    assert (values**2).mean() == pytest.approx(made.expected_mse, rel=0.05)
    assert (factor * values**2).mean() != pytest.approx(made.expected_mse, rel=0.05)


def test_convolve_is_circular() -> None:
    h, x = np.array([0.5, 0.25, 0.25]), np.arange(8) * 1000
    values = convolve(x, h, epsilon=40.0, delta=1e-3).values
    assert np.abs(values - circulant(h, 8) @ x).max() < 10


def test_a_contribution_is_over_all_series_together_and_in_steps_rounded_up() -> None:
    assert cloak(contribution=0.31, step=0.1).contribution == Contribution(4)
    assert cloak(contribution=0.3, step=0.1).contribution == Contribution(3)
    one, two = (SeriesCloak(RunningSum(), 8, **CLAIM, series=series) for series in (1, 2))
    assert one.noise.mu == pytest.approx(two.noise.mu, rel=1e-6)
    assert cloak(contribution=4).expected_mse == pytest.approx(16 * cloak().expected_mse, rel=1e-3)


def test_a_cloak_releases_once_and_its_copies_never() -> None:
    made = cloak()
    for twin in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):  # noqa: S301 - our own
        with pytest.raises(BudgetError):
            twin.release(np.ones(8))
    published = made.release(np.ones(8))
    assert pickle.loads(pickle.dumps(published)).values.tolist() == published.values.tolist()  # noqa: S301 - our own
    assert (published.values != cloak().release(np.ones(8)).values).all()
    with pytest.raises(BudgetError):
        made.release(np.ones(8))
    with pytest.raises(AttributeError, match="epsilon"):
        made.epsilon = 3.0
    simulated = [made.simulate(np.ones(8), rng=np.random.default_rng(3)).values for _ in range(2)]
    assert simulated[0].tolist() == simulated[1].tolist()


def test_many_threads_release_once() -> None:
    made, released = cloak(), list[object]()

    def work() -> None:
        with contextlib.suppress(BudgetError):
            released.append(made.release(np.ones(8)))

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(released) == 1


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_cannot_release() -> None:
    made = cloak()
    assert error_in_fork(lambda: made.release(np.ones(8))) == "BudgetError"


@pytest.mark.parametrize(
    "values",
    [
        *(
            [SECRET + 0.5] * 8,
            [SECRET] * 7,
            [[[SECRET] * 8]],
            SECRET + 0.5,
            [SECRET * 1e40] * 8,
            [SECRET] * 7 + [np.nan],
        ),
        *(
            [f"{SECRET}"] * 8,
            [SECRET, None, [SECRET]],
            [SECRET * 10**400] * 8,
            {SECRET},
            None,
            np.array([SECRET], "M8[s]"),
        ),
    ],
)
def test_bad_values_are_refused_and_never_shown(values: Any) -> None:
    made, stream = cloak(), Stream(RunningSum(), 8, **CLAIM)
    for call in (made.release, lambda v: made.simulate(v, rng=np.random.default_rng(1))):
        with pytest.raises(ReadingError) as caught:
            call(values)
        problem: BaseException | None = caught.value
        while problem is not None:
            assert "8765" not in repr(problem) + repr(getattr(problem, "values", ""))
            problem = problem.__context__
    with pytest.raises(ReadingError):
        stream.push(values)
    assert stream.time == 0
    made.release(np.ones(8))


@pytest.mark.parametrize("step", [1.0, 0.25, 4.0])
def test_values_up_to_the_limit_are_exact_and_beyond_it_refused(step: float) -> None:
    made = cloak(step=step)
    largest = math.floor(made.largest_step * (1 - 1e-9))
    x = np.zeros(8)
    x[0] = largest * step
    unit = made.strategy.apply(np.eye(1, 8, dtype=np.int64))[0, 0]
    assert made.strategy.apply(made.steps("x", [x]))[0, 0] == largest * int(unit)
    with pytest.raises(ReadingError, match="too large"):
        made.release(2 * x)
    for wrong in (0.5 * step, 1e-3 * step):
        with pytest.raises(ReadingError, match="not multiples"):
            made.release(x * 0 + 7 * step + wrong)


@pytest.mark.parametrize(
    "options",
    [
        *({"epsilon": 0}, {"delta": 0}, {"delta": 1.5}, {"contribution": 0}, {"contribution": 1.5}, {"step": -1.0}),
        *({"epsilon": 400.0, "delta": 1e-9}, {"circular": "no"}, {"series": 0}),
        *({"step": 1e300}, {"contribution": 1e300, "step": 1.0}, {"step": 1e-300, "contribution": 1.0}),
    ],
)
def test_guarantees_and_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        cloak(**options)


NO_FILTERS: list[Any] = ["running-sum", RunningSum, None, 0.5, [], [0.5, 0.5]]
NO_SERIES: list[Any] = [7, [], [[]], [[1], [2, 3]], "123", [[[1]]]]


@pytest.mark.parametrize(
    ("x", "filters"), [*(([1, 2, 3], filters) for filters in NO_FILTERS), *((x, RunningSum()) for x in NO_SERIES)]
)
def test_what_is_no_series_or_no_filter_is_refused(x: Any, filters: Any) -> None:
    with pytest.raises(CloakworkError) as caught:
        publish(x, filters, **CLAIM)
    assert isinstance(caught.value, InputError)
