"""Querying the black box: wrong outcomes are refused, memory stays flat, continuous outputs are binned."""

from typing import Any

import numpy as np
import pytest

from cloakwork.auditing.testers import Binned, UnknownPair
from cloakwork.auditing.testers.query_plan import CHUNK, count_outcomes
from cloakwork.errors import InputError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([0, 1, 2], r"returned outcome 2: only 0 to 1 are declared \(n=2\)"),
        ([0, -1, 1], "returned outcome -1"),
        ([0, 1], r"asked for 3 outcomes and returned shape \(2,\)"),
        ([[0, 1, 1]], "returned shape"),
        ([0.0, 1.0, 0.5], "returned float64 values.*Binned"),
        (["a", "b", "a"], "returned <U1 values"),
    ],
)
def test_wrong_outcomes_are_refused(returned: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        count_outcomes(lambda *_: returned, 0, 3, 2, RNG)


@pytest.mark.parametrize("counts", [[1, 1], [1, 2, 0], [4, -1], [1.5, 1.5]])
def test_counts_that_do_not_fit_are_refused(counts: list[float]) -> None:
    class Wrong:
        def __call__(self, *asked: Any) -> list[int]:
            raise AssertionError(asked)

        def counts(self, *_: Any) -> list[float]:
            return counts

    with pytest.raises(InputError, match="sum to 3"):
        count_outcomes(Wrong(), 0, 3, 2, RNG)


def test_answers_are_asked_for_in_parts_and_all_are_counted() -> None:
    sizes = []

    def mechanism(database: int, size: int, rng: np.random.Generator) -> Any:
        sizes.append(size)
        return np.full(size, database == 1)

    assert count_outcomes(mechanism, 1, 2 * CHUNK + 5, 3, RNG).tolist() == [0, 2 * CHUNK + 5, 0]
    assert sizes == [CHUNK, CHUNK, 5]
    assert count_outcomes(mechanism, 0, 0, 3, RNG).tolist() == [0, 0, 0]


def test_more_queries_than_can_be_made_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be made"):
        UnknownPair(2, 100.0).test(lambda *_: np.zeros(1, dtype=int), RNG)


def test_bins_cover_all_outputs_and_nan_has_its_own() -> None:
    given = np.array([-np.inf, -1.0, 0.0, 0.5, 1.0, np.inf, np.nan])
    binned = Binned(lambda *_: given, edges=[0.0, 1.0])
    assert binned.n == 4
    assert binned(0, 7, RNG).tolist() == [0, 0, 1, 1, 2, 2, 3]
    with pytest.raises(InputError, match="increasing"):
        Binned(lambda *_: given, edges=[1.0, 0.0])


def test_a_binned_mechanism_is_tested_through_plain_calls() -> None:
    rng = np.random.default_rng(3)
    edges = np.linspace(-3, 4, 12)

    def laplace(scale: float) -> Binned:
        return Binned(lambda database, size, rng: database + rng.laplace(scale=scale, size=size), edges=edges)

    tester = UnknownPair(laplace(1.0).n, 1.0, 0.0, 0.2)
    assert tester.test(laplace(1.0), rng).accepts
    assert not tester.test(laplace(0.4), rng).accepts
