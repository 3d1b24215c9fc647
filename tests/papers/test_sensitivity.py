"""The sensitivity of the line against the printed rate."""

import math

import numpy as np
import pytest

from papers import Result
from papers.experiments.sensitivity import (
    EARLY_CONSTANT,
    Axis,
    M,
    Sensitivities,
    T,
)
from tests.papers.kit import quick


@pytest.fixture(scope="module")
def result() -> Result:
    return quick("sensitivity")


def finding_of(result: Result) -> Sensitivities:
    assert isinstance(result.finding, Sensitivities)
    return result.finding


def dense(n: int, m: int, time: float) -> float:
    places, sensors = np.arange(1, n + 1) / n, np.arange(1, m + 1) / m
    matrix = np.exp(-((sensors[:, None] - places) ** 2) / (4 * time)) / math.sqrt(4 * math.pi * time)
    return float(np.linalg.norm(np.diff(matrix, axis=1), axis=0).max())


def test_points_are_those_of_the_caption(result: Result) -> None:
    finding = finding_of(result)
    for axis, setting in (
        (Axis.SENSORS, lambda x: (500, int(x), T)),
        (Axis.PLACES, lambda x: (int(x), M, T)),
        (Axis.TIME, lambda x: (1000, M, x)),
    ):
        for point in finding.of(axis).points[::2]:
            assert point.delta == pytest.approx(dense(*setting(point.x)), rel=1e-9)


def test_the_early_law_has_its_closed_form(result: Result) -> None:
    # the l2 norm of g' over the whole line
    assert abs(EARLY_CONSTANT - 0.2233) < 1e-4
    assert finding_of(result).constant == pytest.approx(EARLY_CONSTANT, rel=1e-3)
    assert 0.02 < finding_of(result).valid_until < 0.05
