"""Heat on a line: the kernel, its laws, the values of the papers, what is refused."""

from typing import Any

import numpy as np
import pytest

from cloakwork.physics import HeatLine, Placement


def test_entries_are_the_heat_kernel() -> None:
    line = HeatLine(n=4, m=[0.0, 1.0], T=0.5, length=2.0, gain=3.0)
    x = np.array([0.5, 1.0, 1.5, 2.0])
    for row, sensor in enumerate((0.0, 1.0)):
        expected = 3.0 * np.exp(-((x - sensor) ** 2) / 2.0) / np.sqrt(2.0 * np.pi)
        assert line.matrix[row] == pytest.approx(expected, rel=1e-14)


def test_two_short_times_are_one_long_time() -> None:
    """In the continuum g_S * g_T = g_(S+T); a sum over a fine grid far from the ends is the integral."""
    n, length = 400, 10.0
    middle = [4.0, 5.0, 6.1]
    first = HeatLine(n=n, m=middle, T=0.1, length=length).matrix
    second = HeatLine(n=n, m=n, T=0.2, length=length).matrix
    both = HeatLine(n=n, m=middle, T=0.3, length=length).matrix
    interior = slice(120, 280)
    assert np.allclose((first @ second * length / n)[:, interior], both[:, interior], atol=1e-12)


@pytest.mark.parametrize(
    ("placement", "expected"), [(Placement.GRID, 0.135897), (Placement.ANYWHERE, 0.135917), ("anywhere", 0.135917)]
)
def test_the_papers_line_has_the_checked_sensitivity(placement: Any, expected: float) -> None:
    line = HeatLine(n=100, m=50, T=0.05, placement=placement)
    assert 0.01 * line.moves().steepest().value == pytest.approx(expected, abs=5e-7)


def test_the_unit_of_length_does_not_matter() -> None:
    """In units k times smaller, T grows by k^2, readings shrink by k and slopes by k^2."""
    metres = HeatLine(n=40, m=9, T=0.02, length=1.0)
    decimetres = HeatLine(n=40, m=9, T=2.0, length=10.0)
    assert decimetres.matrix == pytest.approx(metres.matrix / 10, rel=1e-12)
    assert decimetres.moves().steepest().value == pytest.approx(metres.moves().steepest().value / 100, rel=1e-11)
