"""Marginals of binary attributes: exactness, privacy, error, consistency, refusals."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from numpy.typing import NDArray
from scipy import linalg

from cloakwork._checks import FloatArray
from cloakwork.errors import CalibrationError, InputError, ReadingError
from cloakwork.privacy import Budget
from cloakwork.series import Marginals, marginals
from cloakwork.series.marginals import walsh

WORKLOADS: list[tuple[tuple[int, ...], ...]] = [
    tuple(combinations(range(4), 2)),
    tuple(combinations(range(5), 3)),
    ((0, 1, 2, 3),),
    ((0,), (1, 2), (3, 0, 2)),
    ((), (4,)),
]


def people(n: int, attributes: int, seed: int = 1) -> NDArray[np.int64]:
    """Rows whose attributes hang together."""
    rng = np.random.default_rng(seed)
    chance = rng.beta(0.7, 0.7, size=(n, 1))
    return (rng.random((n, attributes)) < chance).astype(np.int64)


def counted(rows: NDArray[np.int64], attributes: tuple[int, ...]) -> FloatArray:
    """The table of these attributes, row by row."""
    table = np.zeros((2,) * len(attributes))
    for row in rows:
        table[tuple(row[list(attributes)])] += 1
    return table


def published(rows: NDArray[np.int64], sets: tuple[tuple[int, ...], ...], **options: Any) -> Marginals:
    return marginals(rows, sets=sets, epsilon=1.0, delta=1e-6, **options)


NOBODY = np.zeros((0, 5), dtype=np.int64)


@pytest.mark.parametrize("sets", WORKLOADS)
def test_without_its_noise_each_table_counts_the_rows(sets: tuple[tuple[int, ...], ...]) -> None:
    rows = people(300, 5)
    found, nothing = (published(one, sets, rng=np.random.default_rng(2)) for one in (rows, rows[:0]))
    for one in sets:
        np.testing.assert_allclose(found.table(one) - nothing.table(one), counted(rows, one), atol=1e-6)
        np.testing.assert_array_equal(found.tables[one], found.table(one))
    assert found.rows - nothing.rows == pytest.approx(300)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 700])
def test_coefficients_of_packed_rows_are_those_of_the_histogram(n: int) -> None:
    rows = people(n, 6)
    histogram = np.zeros(64, dtype=np.int64)
    np.add.at(histogram, rows @ (1 << np.arange(6)), 1)
    found = walsh(rows.astype(bool), np.arange(64))
    np.testing.assert_array_equal(found, linalg.hadamard(64) @ histogram)


@pytest.mark.parametrize("sets", WORKLOADS)
@pytest.mark.parametrize("contribution", [1, 4])
def test_every_row_moves_the_release_by_just_what_the_guarantee_allows(
    sets: tuple[tuple[int, ...], ...], contribution: int
) -> None:
    """All 2^5 rows, each so many times, by brute force; different rows move it by less than equal ones."""
    found = published(NOBODY, sets, contribution=contribution)
    weights = np.rint(np.sqrt(found.noise.variance / found.variances))
    moves = [weights * walsh(np.array([row], dtype=bool), found.masks) for row in product((0, 1), repeat=5)]
    shifts = [contribution * float(np.linalg.norm(move)) for move in moves]
    assert np.ptp(shifts) == pytest.approx(0.0, abs=1e-9)
    assert np.linalg.norm(moves[0] + moves[-1]) <= 2 * np.linalg.norm(moves[0])
    ratio = found.noise.table.ratio
    theirs = pld.from_gaussian_mechanism(ratio, sensitivity=max(shifts), value_discretization_interval=1e-4)
    assert 0.97e-6 < theirs.get_delta_for_epsilon(1.0) < 1.01e-6
    assert found.noise.delta(1.0) <= 1e-6 * (1 + 1e-9)
    assert Budget().gaussian(found.noise.mu).epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("sets", WORKLOADS)
def test_the_measured_error_is_the_stated_one(sets: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(3)
    squares: dict[tuple[int, ...], list[float]] = {one: [] for one in sets}
    for _ in range(1500):
        found = published(NOBODY, sets, rng=rng)
        for one, table in found.tables.items():
            squares[one].extend((table**2).ravel())
    everything = np.concatenate([np.array(part) for part in squares.values()])
    assert float(everything.mean()) == pytest.approx(found.expected_mse, rel=0.05)
    for one, part in squares.items():
        assert float(np.mean(part)) == pytest.approx(found.standard_deviation(one) ** 2, rel=0.1)


def test_two_releases_differ() -> None:
    rows = people(50, 4)
    first, second = (marginals(rows, order=2, epsilon=1.0, delta=1e-6) for _ in range(2))
    assert (first.coefficients != second.coefficients).any()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "order="),
        ({"order": 2, "sets": [(0, 1)]}, "order="),
        ({"order": 0}, "order=0"),
        ({"order": 5}, "order=5"),
        ({"sets": []}, "sets"),
        ({"sets": [(0, 4)]}, r"\(0, 4\)"),
        ({"sets": [(1, 1)]}, r"\(1, 1\)"),
        ({"sets": [(0.5,)]}, r"\(0\.5,\)"),
        ({"sets": [(0, 1), (1, 0)]}, "sets"),
        ({"attributes": 63, "order": 1}, "1 to 62"),
        ({"attributes": 60, "order": 8}, "cells"),
        ({"order": 1, "contribution": 0}, "contribution=0"),
        ({"order": 1, "epsilon": 0}, "epsilon=0"),
    ],
)
def test_what_cannot_be_published_is_refused(options: dict[str, Any], says: str) -> None:
    rows = np.zeros((3, options.pop("attributes", 4)), dtype=int)
    with pytest.raises(InputError, match=says):
        marginals(rows, **{"epsilon": 1.0, "delta": 1e-6, **options})


def test_rows_that_are_not_bits_are_refused_by_place() -> None:
    rows = np.zeros((5, 3))
    rows[3, 1] = 77.0
    with pytest.raises(ReadingError, match=r"rows\[3, 1\]") as problem:
        marginals(rows, order=1, epsilon=1.0, delta=1e-6)
    assert "77" not in str(problem.value)
    for bad in (np.zeros(3), np.full((2, 3), np.nan), [["a", "b", "c"]], [[1], [1, 0]]):
        with pytest.raises(ReadingError, match=r"rows"):
            marginals(bad, order=1, epsilon=1.0, delta=1e-6)
    with pytest.raises(CalibrationError, match="generator"):
        marginals(np.zeros((1, 3)), order=1, epsilon=1.0, delta=1e-6, rng=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no requested table"):
        marginals(np.zeros((5, 3)), order=1, epsilon=1.0, delta=1e-6).table((0, 1))
