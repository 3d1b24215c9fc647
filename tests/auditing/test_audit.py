"""The practical auditor: honest mechanisms are left alone, broken ones are found."""

import numpy as np
import pytest

from benchmarks.mechanisms import (
    Case,
    boundary_cases,
    broken_cases,
    gaussian,
    gaussian_sigma,
    laplace,
    literature_cases,
)
from cloakwork.auditing import Verdict, audit

BROKEN = broken_cases()
BOUNDARY = boundary_cases()
LITERATURE = [case for case in literature_cases() if not case.private]


@pytest.mark.parametrize("case", BOUNDARY, ids=lambda case: case.name)
def test_a_mechanism_at_the_boundary_of_its_claim_raises_hardly_any_alarm(case: Case) -> None:
    rng = np.random.default_rng(1000)
    result = audit(case.mechanism, epsilon=case.epsilon, delta=case.delta, reports=10_000, rng=rng)
    assert result.verdict is not Verdict.VIOLATION
    assert not result.dependence
    assert result.epsilon_lower > 0.5 * case.epsilon  # the auditor is awake: half the claim would have been rejected


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_broken_mechanism_is_found(case: Case) -> None:
    result = audit(case.mechanism, epsilon=case.epsilon, delta=case.delta, rng=np.random.default_rng(8))
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower > case.epsilon
    assert result.delta_lower >= case.delta
    assert result.reports_used < 500_000
    witness = result.witness
    assert witness is not None
    favoured, other = witness.frequencies if witness.direction == "0->1" else witness.frequencies[::-1]
    assert favoured > np.exp(case.epsilon) * other + case.delta


@pytest.mark.parametrize("case", LITERATURE, ids=lambda case: case.name)
def test_the_broken_mechanisms_of_the_literature_are_found(case: Case) -> None:
    result = audit(case.mechanism, epsilon=case.epsilon, reports=60_000, rng=np.random.default_rng(3))
    assert result.verdict is Verdict.VIOLATION


@pytest.mark.parametrize(("delta", "scale", "planned"), [(1e-2, 0.5, 620), (1e-2, 0.7, 3_800), (1e-3, 0.5, 2_200)])
def test_too_little_gaussian_noise_is_found_within_three_times_the_plan(
    delta: float, scale: float, planned: int
) -> None:
    mechanism = gaussian(scale * gaussian_sigma(1.0, delta))
    used = [
        audit(mechanism, epsilon=1.0, delta=delta, reports=50_000, rng=np.random.default_rng(k)).reports_used
        for k in range(5)
    ]
    assert np.median(used) <= 3 * planned


def test_bounds_never_exceed_what_is_true() -> None:
    for seed in range(5):
        result = audit(laplace(0.5), epsilon=1.0, reports=3_000, rng=np.random.default_rng(seed))
        assert 1.0 < result.epsilon_lower <= 2.0
        # delta of Laplace noise of scale 1/2 at epsilon 1: 1 - e^((1 - 2) / 2)
        assert 0.0 < result.delta_lower <= 1 - np.exp(-0.5)


def test_floating_point_noise_is_found_by_its_low_bits() -> None:
    def naive(database: int, size: int, rng: np.random.Generator) -> np.ndarray:
        return database + rng.laplace(size=size)

    result = audit(naive, epsilon=1.0, rng=np.random.default_rng(1))
    assert result.verdict is Verdict.VIOLATION
    assert result.reports_used < 2_000
    assert result.witness is not None
    assert "lowest bit" in result.witness.event
