"""Le Cam's bound on a line: never above the truth, and beaten by no method."""

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from cloakwork.physics import HeatLine
from papers.sweeps import le_cam

Floats = NDArray[np.float64]


def test_two_cells_have_the_bound_of_high_precision_rounded_down() -> None:
    sigma = 20.0  # a separation so small that no distance below a step is better
    found = le_cam(HeatLine(n=2, m=1, T=0.05), sigma)
    with mpmath.workdps(40):
        T = mpmath.mpf("0.05")

        def g(u: float) -> mpmath.mpf:
            return mpmath.exp(-(mpmath.mpf(u) ** 2) / (4 * T)) / mpmath.sqrt(4 * mpmath.pi * T)

        steps = [abs(g(0.5) - g(0)), abs(g(1) - g(0.5))]  # of each cell and the position a step before it
        exact = sum(mpmath.ncdf(-step / mpmath.mpf(sigma) / 2) for step in steps) / 4
        assert mpmath.mpf(found) <= exact
        assert float(exact) == pytest.approx(found, rel=1e-9)


def posterior_median_errors(physics: HeatLine, sigma: float, runs: int) -> Floats:
    """Mean distance at each place of the line, for the method that is best on average over all places."""
    rng = np.random.default_rng(6)
    x = physics.space.places[:, 0]
    risks = []
    for place in range(physics.places):
        readings = physics.matrix[:, place] + rng.normal(0, sigma, (runs, physics.sensors))
        logs = (readings @ physics.matrix - (physics.matrix**2).sum(axis=0) / 2) / sigma**2
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        cumulative = np.cumsum(posterior, axis=1) / posterior.sum(axis=1, keepdims=True)
        risks.append(np.abs(x[(cumulative < 0.5).sum(axis=1)] - x[place]).mean())
    return np.array(risks)


@pytest.mark.parametrize("sigma", [0.3, 2.0, 20.0])
def test_no_method_beats_it(sigma: float) -> None:
    line = HeatLine(n=40, m=12, T=0.02)
    risks, found = posterior_median_errors(line, sigma, 800), le_cam(line, sigma)
    assert found <= risks.mean() * 1.02
    assert found >= 0.25 * risks.mean()  # and it is not far below what the best method reaches
