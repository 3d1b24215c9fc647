"""Published series under our own audit: they keep their guarantee and not half of it; low bits reveal nothing."""

import numpy as np
import pytest

from cloakwork.auditing import Verdict, audit
from cloakwork.series import Coefficients, SeriesCloak, convolve

X = np.array([[3, 0, 4, 1, 7, 0], [3, 0, 4, 2, 7, 0]])
H = np.array([1.0, 0.5, 0.25])


def neighbours(database: int, size: int) -> np.ndarray:
    return np.tile(X[database], (size, 1))


@pytest.mark.parametrize(("claimed", "verdict"), [(1.0, Verdict.NONE_FOUND), (0.5, Verdict.VIOLATION)])
def test_convolve_keeps_its_claim_and_not_half_of_it(claimed: float, verdict: Verdict) -> None:
    """Each row of a batch is a release of its own to someone who sees that row alone."""

    def mechanism(database: int, size: int, rng: np.random.Generator) -> np.ndarray:
        return convolve(neighbours(database, size), H, epsilon=1.0, delta=1e-2).values

    # the noise is new each time, and one alarm in twenty may be false: it counts when it is raised again
    for seed in (5, 6) if verdict is Verdict.NONE_FOUND else (5,):
        result = audit(mechanism, epsilon=claimed, delta=1e-2, reports=12_000, rng=np.random.default_rng(seed))
        if result.verdict is verdict:
            return
    pytest.fail(str(result))


def test_every_release_of_one_neighbour_is_one_of_the_other() -> None:
    """Bit for bit: what is published is a function of whole numbers, and those of either neighbour are all in reach."""
    cloak = SeriesCloak(Coefficients([1.0]), 1, epsilon=3.0, delta=0.1, series=150_000, circular=True)
    reached = []
    for value in (5, 6):
        values = cloak.simulate(np.full((150_000, 1), value), rng=np.random.default_rng(value)).values
        assert np.array_equal(values * cloak.strategy.weights[0], np.rint(values * cloak.strategy.weights[0]))
        reached.append(np.unique(values))
    inner = [values[(values > 5) & (values < 6)] for values in reached]
    assert len(inner[0]) > 500
    assert np.array_equal(inner[0], inner[1])
