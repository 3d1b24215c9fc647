"""Audits of a whole site in one run."""

from collections.abc import Callable

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.auditing import SiteAudit, audit_site
from cloakwork.errors import InputError
from cloakwork.physics import HeatLine
from cloakwork.privacy import Cloak

LINE = HeatLine(n=100, m=50, T=0.05)
CLOAK = Cloak(LINE, epsilon=1.0, delta=1e-6, alpha=0.01)
Fault = Callable[[FloatArray, FloatArray], None]


def audited(fault: Fault | None, seed: int, *, cloak: Cloak = CLOAK, most: int = 480, sure: float = 0.99) -> SiteAudit:
    rng = np.random.default_rng(seed)

    def devices(readings: FloatArray) -> FloatArray:
        noise = cloak.simulate(readings, rng=rng) - readings
        if fault is not None:
            fault(noise, readings)
        return np.asarray(readings + noise)

    return audit_site(cloak, devices, max_frames=most, confidence=sure, rng=rng)


def half(noise: FloatArray, readings: FloatArray) -> None:
    noise /= 2


def shared(noise: FloatArray, readings: FloatArray) -> None:
    noise[21] = noise[20]


def far_apart(noise: FloatArray, readings: FloatArray) -> None:
    noise[41] = noise[5]


@pytest.mark.parametrize(("fault", "suspects"), [(half, None), (shared, {20, 21}), (far_apart, {5, 41})])
def test_too_little_noise_and_shared_noise_are_found_in_a_night(fault: Fault, suspects: set[int] | None) -> None:
    for seed in range(5):
        found = audited(fault, seed)
        assert found.verdict == "violation"
        assert found.frames < 480, "it ends when it has seen enough"
        assert found.epsilon_lower == pytest.approx(found.epsilon) or found.epsilon_lower > found.epsilon
        if suspects:
            assert suspects <= set(found.suspects)
        else:
            assert found.factor_lower <= 2.0
    assert "stands out" in str(found) or not found.suspects


def test_a_site_that_keeps_its_claim_is_accused_no_more_often_than_stated() -> None:
    small = Cloak(HeatLine(n=40, m=6, T=0.02), epsilon=3.0, delta=1e-4, alpha=0.02)
    runs = [audited(None, seed, cloak=small, most=64, sure=0.8) for seed in range(60)]
    assert sum(run.verdict == "violation" for run in runs) <= 15  # 12 of 60 are allowed on average
    assert 0.9 < sum(run.right for run in runs) / sum(run.allowed for run in runs) < 1.02, "and its guesses are good"


def test_what_cannot_be_audited_is_refused() -> None:
    local = Cloak(LINE, epsilon=1.0, delta=0, alpha=0.01, scope="sensor", noise="laplace")
    with pytest.raises(InputError, match="Gaussian"):
        audit_site(local, lambda readings: readings)
    with pytest.raises(InputError, match="confidence"):
        audit_site(CLOAK, lambda readings: readings, confidence=1.0)
