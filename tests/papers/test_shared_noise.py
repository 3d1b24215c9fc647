"""Shared noise: shifts by brute force, and what designs reach at the same claim."""

import numpy as np
import pytest

from cloakwork.demo import load_flat
from papers.experiments.shared_noise import (
    EQUAL,
    FOR_ONE,
    FOR_TWO,
    INDEPENDENT,
    SharedNoise,
    cloak_of,
    example_flat,
    shift,
)
from tests.papers.kit import probed, quick


def test_the_shift_of_a_frame_is_that_of_the_worst_neighbours() -> None:
    flat = example_flat()
    assert flat.matrix.shape == load_flat().physics.matrix.shape
    cloak = cloak_of(flat, EQUAL)
    pairs, lengths = flat.space.pairs, flat.space.lengths
    moved = np.abs(flat.matrix[:, pairs[:, 0]] - flat.matrix[:, pairs[:, 1]]) / lengths
    worst = cloak.alpha * np.sqrt((moved**2).sum(axis=0)).max() / cloak.sigma
    gains = np.ones(flat.sensors)
    assert shift(cloak, gains) == pytest.approx(worst / cloak.frame_mu)
    assert shift(cloak, 1.1 * gains) == pytest.approx(1.1 * worst / cloak.frame_mu)


@pytest.mark.parametrize("found", [probed, quick])
def test_shared_noise_locates_better_at_the_same_claim_and_never_below_the_limit(found: object) -> None:
    finding = found("shared-noise").finding  # type: ignore[operator]
    assert isinstance(finding, SharedNoise)
    [site] = finding.sites
    equal, independent, one, two = (site.design(name) for name in (EQUAL, INDEPENDENT, FOR_ONE, FOR_TWO))
    assert site.limit < one.variance < two.variance < independent.variance < equal.variance
    assert two.medians[2] < min(one.medians[2], independent.medians[2]), "designed for one, it is worse for three"
    assert all(design.shift <= 1 for design in site.designs)
    if found is quick:
        assert one.distance.value + 3 * one.distance.error < independent.distance.value
