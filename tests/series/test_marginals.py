"""Marginals and predicates of binary attributes: exactness, privacy, error, consistency, refusals."""

import copy
import math
import pickle
from itertools import combinations, product

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg

from cloakwork._checks import FloatArray
from cloakwork.errors import BudgetError, CalibrationError, InputError, ReadingError
from cloakwork.privacy import largest_mu
from cloakwork.series import MarginalsCloak, marginals
from cloakwork.series.attribute_tables import AttributeTables, transformed

MU = largest_mu(1.0, 1e-6)
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


def cloak_of(sets: tuple[tuple[int, ...], ...], attributes: int = 5) -> MarginalsCloak:
    return MarginalsCloak(attributes, sets=sets, epsilon=1.0, delta=1e-6)


def queries(sets: tuple[tuple[int, ...], ...], attributes: int) -> FloatArray:
    """All cells of all tables as linear queries of the 2^d kinds of rows."""
    kinds = np.array(list(product((0, 1), repeat=attributes)))
    found = [
        (kinds[:, list(one)] == np.array(cell)).all(axis=1) for one in sets for cell in product((0, 1), repeat=len(one))
    ]
    return np.array(found, dtype=float)


def least_possible(workload: FloatArray, steps: int = 100) -> float:
    """A lower bound on the mean squared error of every matrix mechanism, at mu = 1, by a dual feasible point.

    The mean squared error is min tr(G X^-1) / cells over X with diagonal 1, G the Gram matrix; for every v > 0 it is at
    least 2 tr((V^1/2 G V^1/2)^1/2) - sum v (Denisov, McMahan, Rush, Smith and Thakurta, whose iteration this is).
    """
    gram = workload.T @ workload
    v = np.ones(len(gram))
    for _ in range(steps):
        values, vectors = np.linalg.eigh(np.sqrt(v)[:, None] * gram * np.sqrt(v))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        bound = 2 * np.trace(root) - v.sum()
        v = np.diag(root).copy()
    return float(bound) / len(workload)


@pytest.mark.parametrize("sets", WORKLOADS)
def test_without_its_noise_each_table_counts_the_rows(sets: tuple[tuple[int, ...], ...]) -> None:
    cloak = cloak_of(sets)
    rows = people(300, 5)
    found, nothing = (cloak.simulate(one, rng=np.random.default_rng(2)) for one in (rows, rows[:0]))
    for one in sets:
        np.testing.assert_allclose(found.table(one) - nothing.table(one), counted(rows, one), atol=1e-6)
        np.testing.assert_array_equal(found.tables[one], found.table(one))
    assert found.rows - nothing.rows == pytest.approx(300)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 700])
def test_coefficients_of_packed_rows_are_those_of_the_histogram(n: int) -> None:
    wanted = AttributeTables.all_of(6, 3)
    rows = people(n, 6)
    histogram = np.zeros(64, dtype=np.int64)
    np.add.at(histogram, rows @ (1 << np.arange(6)), 1)
    np.testing.assert_array_equal(
        wanted.coefficients(rows.astype(bool)), (linalg.hadamard(64) @ histogram)[wanted.masks]
    )


def test_coefficients_of_more_rows_than_a_block_are_exact() -> None:
    rows = np.random.default_rng(1).integers(0, 2, size=(100_003, 3))
    parity = 1 - 2 * (rows.sum(axis=1) % 2)
    assert AttributeTables.all_of(3, 3).coefficients(rows.astype(bool))[-1] == parity.sum()


@pytest.mark.parametrize("sets", WORKLOADS)
@pytest.mark.parametrize("contribution", [1, 4])
def test_every_row_moves_the_release_by_just_what_the_claim_allows(
    sets: tuple[tuple[int, ...], ...], contribution: int
) -> None:
    """All 2^5 rows, each so many times, by brute force."""
    cloak = MarginalsCloak(5, sets=sets, epsilon=1.0, delta=1e-6, contribution=contribution)
    weights, nothing = cloak.strategy.weights, cloak.requested.coefficients(np.zeros((0, 5), dtype=bool))
    assert not nothing.any()
    shifts = []
    for row in product((0, 1), repeat=5):
        rows = np.tile(np.array(row, dtype=bool), (contribution, 1))
        shifts.append(np.linalg.norm(weights * cloak.requested.coefficients(rows)))
    assert np.ptp(shifts) == pytest.approx(0.0, abs=1e-9)
    ratio = cloak.noise.table.ratio
    theirs = pld.from_gaussian_mechanism(ratio, sensitivity=max(shifts), value_discretization_interval=1e-4)
    assert 0.97e-6 < theirs.get_delta_for_epsilon(1.0) < 1.01e-6
    assert cloak.noise.delta(1.0) <= 1e-6


def test_different_rows_move_the_release_by_less_than_equal_ones() -> None:
    cloak = MarginalsCloak(4, order=2, epsilon=1.0, delta=1e-6, contribution=2)
    weights = cloak.strategy.weights
    most = 2 * math.sqrt(sum(int(weight) ** 2 for weight in weights))
    for first, second in combinations(product((0, 1), repeat=4), 2):
        moved = cloak.requested.coefficients(np.array([first, second], dtype=bool))
        assert np.linalg.norm(weights * moved) < most


@pytest.mark.parametrize("sets", WORKLOADS)
def test_the_measured_error_is_within_3_percent(sets: tuple[tuple[int, ...], ...]) -> None:
    cloak, rng = cloak_of(sets), np.random.default_rng(3)
    nothing = np.zeros((0, 5), dtype=int)
    squares: dict[tuple[int, ...], list[float]] = {one: [] for one in sets}
    for _ in range(2000 if len(sets) > 2 else 3000):
        for one, table in cloak.simulate(nothing, rng=rng).tables.items():
            squares[one].extend((table**2).ravel())
    everything = np.concatenate([np.array(part) for part in squares.values()])
    assert float(everything.mean()) == pytest.approx(cloak.expected_mse, rel=0.03)
    for one, part in squares.items():
        assert float(np.mean(part)) == pytest.approx(cloak.standard_deviation(one) ** 2, rel=0.08)


@pytest.mark.parametrize("sets", WORKLOADS)
def test_the_ideal_error_is_that_of_the_formula_and_rounding_costs_little(sets: tuple[tuple[int, ...], ...]) -> None:
    cloak = cloak_of(sets)
    cells = sum(2 ** len(one) for one in sets)
    within = {sub for one in sets for size in range(len(one) + 1) for sub in combinations(sorted(one), size)}
    worth = [sum(2.0 ** -len(one) for one in sets if set(sub) <= set(one)) for sub in within]
    assert cloak.ideal_mse == pytest.approx(sum(map(math.sqrt, worth)) ** 2 / cells / MU**2, rel=1e-12)
    assert 0 < cloak.rounding_cost < 0.002


@pytest.mark.parametrize("sets", WORKLOADS)
def test_no_matrix_mechanism_has_a_smaller_error(sets: tuple[tuple[int, ...], ...]) -> None:
    attributes = 1 + max(attribute for one in sets for attribute in one)
    cloak = cloak_of(sets, attributes)
    assert cloak.ideal_mse * MU**2 == pytest.approx(least_possible(queries(sets, attributes)), rel=1e-3)


@pytest.mark.parametrize(("attributes", "order", "at_least"), [(8, 2, 3.5), (20, 2, 6.5), (30, 3, 15.0)])
def test_shared_coefficients_beat_noise_on_each_table_apart(attributes: int, order: int, at_least: float) -> None:
    """With m tables of equal size, noise apart has variance m / mu^2 in each cell, since each row is in all m."""
    cloak = MarginalsCloak(attributes, order=order, epsilon=1.0, delta=1e-6)
    apart = math.comb(attributes, order) / MU**2
    assert cloak.separate_mse == pytest.approx(apart, rel=1e-9)
    assert cloak.expected_mse < apart / at_least


def test_tables_of_different_sizes_are_compared_with_their_best_split() -> None:
    sizes = np.array([1, 2, 3])
    shares = np.linspace(0.001, 0.998, 500)
    splits = [(a, b, 1 - a - b) for a in shares for b in shares if a + b < 0.999]
    best = min(float((2.0**sizes / np.array(split)).sum()) for split in splits) / (2.0**sizes).sum()
    assert cloak_of(((0,), (1, 2), (0, 2, 3))).separate_mse == pytest.approx(best / MU**2, rel=1e-3)


def test_all_tables_agree_with_each_other() -> None:
    found = MarginalsCloak(6, order=3, epsilon=1.0, delta=1e-6).release(people(200, 6))
    for one in combinations(range(6), 3):
        table = found.table(one)
        for axis in range(3):
            rest = tuple(attribute for place, attribute in enumerate(one) if place != axis)
            np.testing.assert_allclose(table.sum(axis=axis), found.table(rest), atol=1e-9)
        assert table.sum() == pytest.approx(found.rows, abs=1e-9)
    np.testing.assert_allclose(found.table((4, 1, 2)), np.transpose(found.table((1, 2, 4)), (2, 0, 1)), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 8), st.integers(0, 2**32))
def test_the_transform_is_the_hadamard_matrix_and_its_own_inverse(d: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-(2**40), 2**40, size=(2, 1 << d))
    found = transformed(values)
    np.testing.assert_array_equal(found, values @ linalg.hadamard(1 << d).astype(np.int64))
    np.testing.assert_array_equal(transformed(found), values << d)


def test_many_attributes_need_no_table_of_all_kinds() -> None:
    rows = people(400, 60)
    found = marginals(rows, order=2, epsilon=1.0, delta=1e-6)
    errors = [found.table(one) - counted(rows, one) for one in ((0, 59), (7, 31), (58, 59))]
    assert float(np.abs(errors).max()) < 6 * found.standard_deviation((0, 59))
    assert len(found.tables) == math.comb(60, 2)
    assert (found.epsilon, found.delta) == (1.0, 1e-6)


def test_two_releases_differ_and_a_cloak_releases_once() -> None:
    rows = people(50, 4)
    cloak = MarginalsCloak(4, order=2, epsilon=1.0, delta=1e-6)
    first, second = cloak.release(rows), marginals(rows, order=2, epsilon=1.0, delta=1e-6)
    assert (first.coefficients != second.coefficients).all()
    with pytest.raises(BudgetError, match="0 of 1 left"):
        cloak.release(rows)
    for twin in (pickle.loads(pickle.dumps(cloak)), copy.deepcopy(cloak)):  # noqa: S301 - our own
        with pytest.raises(BudgetError, match="0 of 1 left"):
            twin.release(rows)
    with pytest.raises(AttributeError, match="cloak"):
        cloak.epsilon = 3.0


def test_explanations_say_what_noise_apart_would_cost() -> None:
    cloak = MarginalsCloak(20, order=2, epsilon=1.0, delta=1e-6)
    text = str(cloak.release(people(30, 20)).explain())
    for number in (cloak.expected_mse, cloak.separate_mse):
        assert f"{math.sqrt(number):.4g}" in text
    assert "one row" in text
    assert repr(cloak) == "MarginalsCloak(190 tables of 20 attributes, epsilon=1, delta=1e-06)"
    assert "up to 2 rows" in str(MarginalsCloak(3, order=1, epsilon=1.0, delta=1e-6, contribution=2).explain())


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
        ({"attributes": 63, "order": 1}, "attributes=63"),
        ({"attributes": 2.0, "order": 1}, r"attributes=2\.0"),
        ({"attributes": 60, "order": 8}, "cells"),
        ({"order": 1, "contribution": 0}, "contribution=0"),
        ({"order": 1, "epsilon": 0}, "epsilon=0"),
    ],
)
def test_what_cannot_be_planned_is_refused(options: dict[str, object], says: str) -> None:
    given_: dict[str, object] = {"attributes": 4, "epsilon": 1.0, "delta": 1e-6} | options
    with pytest.raises(InputError, match=says):
        MarginalsCloak(given_.pop("attributes"), **given_)  # type: ignore[arg-type]


def test_rows_that_are_not_bits_are_refused_by_place() -> None:
    cloak = MarginalsCloak(3, order=1, epsilon=1.0, delta=1e-6)
    rows = np.zeros((5, 3))
    rows[3, 1] = 77.0
    with pytest.raises(ReadingError, match=r"rows\[3, 1\]") as problem:
        cloak.release(rows)
    assert "77" not in str(problem.value)
    for bad in (np.zeros((5, 2)), np.zeros(3), np.full((2, 3), np.nan), [["a", "b", "c"]]):
        with pytest.raises(ReadingError, match=r"rows"):
            cloak.release(bad)
    with pytest.raises(InputError, match=r"\(3,\)"):
        marginals(np.zeros(3), order=1, epsilon=1.0, delta=1e-6)
    with pytest.raises(CalibrationError, match="generator"):
        cloak.simulate(np.zeros((1, 3)), rng=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no requested table"):
        cloak.release(np.zeros((5, 3))).table((0, 1))
