"""The sensitivity of the line against the printed rate."""

import math

import numpy as np
import pytest

from papers import Agreement, Result
from papers.experiments.sensitivity import (
    EARLY_CONSTANT,
    LATE_CONSTANT,
    Axis,
    M,
    Point,
    Sensitivities,
    Sweep,
    T,
)
from tests.papers.kit import quick


@pytest.fixture(scope="module")
def result() -> Result:
    return quick("sensitivity")


def finding_of(result: Result) -> Sensitivities:
    assert isinstance(result.finding, Sensitivities)
    return result.finding


def made_up(*, in_m: float = 0.5, in_n: float = -1.0, in_T: float = -1.5) -> Sensitivities:
    """Sensitivities that follow power laws, with the constant of late times."""
    sweeps = []
    for axis, power in ((Axis.SENSORS, in_m), (Axis.PLACES, in_n), (Axis.TIME, in_T)):
        n = axis.places or 100
        start = {Axis.SENSORS: 10.0, Axis.PLACES: 50.0, Axis.TIME: 1e-4}[axis]
        m, time = (start if axis is Axis.SENSORS else M), (start if axis is Axis.TIME else T)
        first = 0.9 * LATE_CONSTANT * math.sqrt(m) / ((start if axis is Axis.PLACES else n) * time**1.5)
        x = [start * 10 ** (k / 2) for k in range(11)]
        sweeps.append(Sweep(axis, tuple(Point(at, first * (at / start) ** power) for at in x)))
    return Sensitivities(tuple(sweeps))


def verdicts(finding: Sensitivities) -> list[Agreement]:
    return [claim.verdict for claim in finding.claims()]


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


def test_the_known_value_of_the_papers_line() -> None:
    assert dense(100, 50, 0.05) == pytest.approx(0.135897, abs=1e-6)


def test_the_rate_is_tight_in_sensors_and_places_and_not_in_time(result: Result) -> None:
    finding = finding_of(result)
    assert finding.of(Axis.SENSORS).slope().value == pytest.approx(0.5, abs=0.002)
    assert finding.of(Axis.PLACES).slope().value == pytest.approx(-1.0, abs=0.002)
    assert finding.early.value == pytest.approx(-0.75, abs=0.002)
    assert finding.late.value == pytest.approx(-1.5, abs=0.05)
    assert verdicts(finding) == [Agreement.LOOSER, Agreement.AGREES, Agreement.AGREES, Agreement.WRONG]


def test_the_early_law_has_its_closed_form(result: Result) -> None:
    # the l2 norm of g' over the whole line
    assert abs(EARLY_CONSTANT - 0.2233) < 1e-4
    assert finding_of(result).constant == pytest.approx(EARLY_CONSTANT, rel=1e-3)
    assert 0.02 < finding_of(result).valid_until < 0.05


def test_the_late_law_bounds_the_ratio(result: Result) -> None:
    ratios = finding_of(result).ratios
    assert max(ratios) < LATE_CONSTANT
    assert ratios[-1] == pytest.approx(LATE_CONSTANT, rel=0.03)
    assert list(ratios) == sorted(ratios)


def test_verdicts_follow_the_numbers() -> None:
    assert verdicts(made_up()) == [Agreement.AGREES] * 4
    assert verdicts(made_up(in_m=0.7))[1] is Agreement.WRONG
    assert verdicts(made_up(in_n=-0.8))[2] is Agreement.WRONG
    assert verdicts(made_up(in_T=-1.2))[3] is Agreement.WRONG
    assert verdicts(made_up(in_T=-1.2))[0] is Agreement.WRONG  # it grows past the constant
    assert verdicts(made_up(in_T=-1.8))[0] is Agreement.LOOSER
