"""The papers' noise: valid but wasteful where their formula holds, and refused where it does not."""

import math

import pytest

from cloakwork.errors import CalibrationError
from cloakwork.physics import HeatLine
from cloakwork.privacy import Profile, largest_mu
from papers.calibration import Calibration, calibrated, paper_mu

CLAIMS = ((1.0, 0.1), (1.0, 1e-6))


@pytest.mark.parametrize(("claim", "factor"), list(zip(CLAIMS, (4.65, 6.65), strict=True)))
def test_the_papers_formula_is_valid_but_wasteful_where_it_holds(claim: tuple[float, float], factor: float) -> None:
    mu = paper_mu(*claim)
    assert Profile(mu).delta(claim[0]) <= claim[1]
    assert largest_mu(*claim) / mu == pytest.approx(factor, abs=0.01)


@pytest.mark.parametrize(("delta", "limit"), [(0.5, 7.6), (0.2, 21.9), (0.1, 39.3), (0.01, 142.8)])
def test_the_papers_formula_is_refused_where_it_is_not_private(delta: float, limit: float) -> None:
    paper_mu(limit - 0.2, delta)
    assert Profile((limit + 0.2) / (2 * math.log(1.25 / delta))).delta(limit + 0.2) > delta
    with pytest.raises(CalibrationError) as refused:
        paper_mu(limit + 0.2, delta)
    assert refused.value.values == {"epsilon": limit + 0.2, "delta": delta}


def test_a_cloak_has_the_papers_noise_at_the_same_claim() -> None:
    line = HeatLine(n=100, m=50, T=0.05)
    exact, paper = (calibrated(line, which, epsilon=1, delta=0.1, alpha=0.01) for which in Calibration)
    assert paper.sigma / exact.sigma == pytest.approx(4.65, abs=0.01)
    assert paper.frame_mu == pytest.approx(paper_mu(1, 0.1), rel=1e-6)
    assert (paper.epsilon, paper.delta) == (exact.epsilon, exact.delta)
