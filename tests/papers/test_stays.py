"""Long stays: the smoother's weights against a dense inverse, and what nights tell."""

import numpy as np
import pytest

from papers.experiments.stays import cloak_of, share_of, weights_of
from tests.papers.kit import probed


def test_the_smoother_is_the_inverse_of_the_dense_covariance() -> None:
    cloak = cloak_of(8.0, 120)
    slow = cloak.slow
    assert slow is not None
    frames = 120 + 2 * 24
    block = np.arange(frames) // slow.renew
    covariance = np.eye(frames) + share_of(cloak) * slow.fade ** np.abs(block[:, None] - block)
    x = np.repeat([0.0, 1.0, 0.0], [24, 120, 24])
    np.testing.assert_allclose(weights_of(cloak, 120, 24), np.linalg.solve(covariance, x), atol=1e-9)
    assert x @ weights_of(cloak, 120, 24) <= cloak.stay_worth(120) * (1 + 1e-9)


def test_simulated_nights_tell_what_is_computed_and_no_more_than_is_claimed() -> None:
    finding = probed("stays").finding
    for one in finding.watched:
        assert one.exact <= one.mu
        assert abs(one.measured.value - one.exact) < 4 * one.measured.error
    plain, kept = finding.watched
    assert kept.mu < plain.mu / 5
    assert kept.spans[0] == pytest.approx(plain.spans[0], rel=0.5)
    assert list(kept.spans) == sorted(kept.spans)
