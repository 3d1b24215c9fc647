"""The Cramer-Rao limit against known values, high precision, other derivatives and simulation."""

import math
from collections.abc import Sequence
from typing import Any

import mpmath
import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from cloakwork.accuracy import Method, cramer_rao
from cloakwork.accuracy.cramer_rao import mean_length
from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics import (
    Graph,
    HeatLine,
    HeatPlane,
    Matrix,
    Space,
    Tolerance,
)

Floats = NDArray[np.float64]
SIGMA = 1.085878 * 0.135897  # exact for (1, 0.1) at alpha = 1/n on the line of the fixture


def high_precision(at: Sequence[float], sigma: float) -> list[float]:
    """Standard deviations on the line with n=100, m=50, T=0.05, in 80 digits."""
    with mpmath.workdps(80):
        T, sensors = mpmath.mpf("0.05"), [mpmath.mpf(j) / 50 for j in range(1, 51)]
        offsets = [[mpmath.mpf(x) - s for s in sensors] for x in at]
        columns = [
            [mpmath.exp(-u * u / (4 * T)) / mpmath.sqrt(4 * mpmath.pi * T) / sigma for u in row] for row in offsets
        ]
        slopes = [
            [-u / (2 * T) * g for u, g in zip(us, gs, strict=True)] for us, gs in zip(offsets, columns, strict=True)
        ]
        J = mpmath.matrix(slopes)
        covariance = (J * J.T) ** -1
        return [float(mpmath.sqrt(covariance[i, i])) for i in range(len(at))]


@pytest.mark.parametrize(("at", "expected"), [([0.5], 0.0087), ([0.24, 0.76], 0.0110)])
def test_the_known_values_on_the_line(line: HeatLine, at: list[float], expected: float) -> None:
    limit = cramer_rao(line, at, SIGMA)
    assert limit.expected_emd == pytest.approx(expected, abs=5e-5)
    assert limit.expected_emd == pytest.approx(float(limit.std.mean()) * math.sqrt(2 / math.pi), rel=1e-12)
    assert limit.method is Method.DERIVATIVES


@pytest.mark.parametrize("at", [[0.5], [0.013], [0.24, 0.76], [0.3, 0.31], [0.1, 0.4, 0.95]])
def test_standard_deviations_are_those_of_eighty_digits(line: HeatLine, at: list[float]) -> None:
    assert cramer_rao(line, at, 0.2).std[:, 0] == pytest.approx(high_precision(at, 0.2), rel=1e-6)


def test_nearly_equal_places_are_never_reported_as_well_known(line: HeatLine) -> None:
    """A pair 1e-9 apart needs more digits than a float has: infinite, not some small number."""
    for gap in (1e-3, 1e-4, 1e-6, 1e-9):
        found = cramer_rao(line, [0.3, 0.3 + gap], 0.2).std[:, 0]
        true = np.array(high_precision([0.3, 0.3 + gap], 0.2))
        assert (found > 0.99 * true).all()


def test_what_no_sensor_sees_cannot_be_located() -> None:
    assert np.isinf(cramer_rao(HeatLine(n=100, m=[0.1], T=1e-5), [0.9], 1.0).std).all()
    assert np.isinf(cramer_rao(HeatLine(n=100, m=1, T=0.05), [0.2, 0.6], 1.0).std).all()


def test_differences_on_a_fine_grid_are_derivatives() -> None:
    fine = HeatPlane(n=(60, 40), m=(5, 4), T=0.05, size=(1.5, 1.0))
    by_differences = Matrix(
        fine.matrix, Space(fine.space.places, fine.space.pairs, fine.space.lengths, fine.space.metric)
    )
    exact, near = (cramer_rao(model, [(0.7, 0.5), (1.2, 0.3)], 0.1) for model in (fine, by_differences))
    assert near.method is Method.DIFFERENCES
    assert near.std == pytest.approx(exact.std, rel=5e-3)


@pytest.mark.parametrize(
    "shape", [[[1.0]], [[1.0, 0.0], [0.0, 1.0]], [[4.0, 1.0], [1.0, 0.5]], [[1.0, 0.0], [0.0, 1e-6]]]
)
def test_the_mean_length_of_normal_errors(shape: list[list[float]]) -> None:
    covariance = np.array(shape)
    draws = np.linalg.norm(
        np.random.default_rng(3).multivariate_normal(np.zeros(len(shape)), covariance, 400_000), axis=1
    )
    assert float(mean_length(covariance)) == pytest.approx(draws.mean(), rel=0.01)


@pytest.mark.parametrize(
    ("model", "at", "options", "key"),
    [
        *(
            (None, [0.5], {"sigma": sigma}, "sigma")
            for sigma in (0, float("nan"), "loud", [0.1, 0.2], [0.1] * 49 + [0.0])
        ),
        *((None, at, {}, "at") for at in ([], 0.5, [1.5], [(0.1, 0.2)], [float("nan")])),
        (Graph(nx.path_graph(4), tau=1.0), ["nowhere"], {}, "at"),
        (Tolerance(), [0.5], {}, "physics"),
    ],
)
def test_what_has_no_limit_is_refused(line: HeatLine, model: Any, at: Any, options: dict[str, Any], key: str) -> None:
    with pytest.raises((InputError, PhysicsError)) as problem:
        cramer_rao(model or line, at, **({"sigma": 0.1} | options))
    assert key in problem.value.values
