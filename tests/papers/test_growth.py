"""Hiding and finding in growing networks: exact slopes and likelihoods, against dense matrices."""

import numpy as np
import pytest
from scipy import linalg

from cloakwork.privacy import largest_mu
from papers.experiment import stream
from papers.experiments.growth import Scene, grow, streets, two_towns
from papers.networks import DELTA, EPSILON, TAU


@pytest.fixture(params=[(streets, 12), (two_towns, 60)], ids=["streets", "towns"])
def scene(request: pytest.FixtureRequest) -> Scene:
    make, scale = request.param
    made: Scene = make(scale)
    return made


def test_norms_and_slope_are_those_of_the_matrix(scene: Scene) -> None:
    matrix = linalg.expm(-TAU * scene.graph.laplacian.toarray())
    assert (matrix**2).sum(axis=0) == pytest.approx(scene.squares, rel=1e-9)
    u, v = scene.graph.space.pairs.T
    assert np.linalg.norm(matrix[:, u] - matrix[:, v], axis=0).max() == pytest.approx(scene.slope, rel=1e-9)


def test_bits_and_the_noise_that_finds_a_source_are_those_of_the_likelihood(scene: Scene) -> None:
    """By hand from the same random numbers: every node's likelihood, and the winner just beside the stated mu."""
    grown = grow(scene, 6, stream(3))
    rng, n = stream(3), scene.graph.places
    at, noise = rng.integers(0, n, 6), rng.standard_normal((6, n))
    matrix = linalg.expm(-TAU * scene.graph.laplacian.toarray())

    def likelihoods(frame: int, mu: float) -> np.ndarray:
        sigma = scene.slope / mu
        reading = matrix[:, at[frame]] + sigma * noise[frame]
        return np.asarray(-((reading[:, None] - matrix) ** 2).sum(axis=0) / (2 * sigma**2))

    logs = [likelihoods(frame, largest_mu(EPSILON, DELTA)) for frame in range(6)]
    bits = [one[node] - np.log(np.exp(one - one.max()).sum()) - one.max() for one, node in zip(logs, at, strict=True)]
    assert np.mean(bits) / np.log(2) + np.log2(n) == pytest.approx(grown.bits.value, abs=1e-6)
    needed = []
    for frame in range(6):
        low, high = 1e-3, 1e9
        while high > 1.0001 * low:
            mu = float(np.sqrt(low * high))
            low, high = (low, mu) if likelihoods(frame, mu).argmax() == at[frame] else (mu, high)
        needed.append(high)
    assert np.mean(needed) == pytest.approx(grown.needed.value, rel=1e-3)


def test_no_frame_says_more_on_average_than_the_divergence_from_noise(scene: Scene) -> None:
    grown = grow(scene, 60, stream(4))
    mu, columns = largest_mu(EPSILON, DELTA), scene.graph.matrix / scene.slope
    assert grown.limit == pytest.approx((mu * columns**2 * mu).sum(axis=0).mean() / 2 / np.log(2), rel=1e-6)
    assert grown.bits.value - 3 * grown.bits.error < grown.limit
