"""The numerical range of a model."""

import numpy as np

from cloakwork.physics import HeatLine


def test_weights_make_a_range_of_their_own() -> None:
    line = HeatLine(n=20, m=6, T=0.02)
    weights = np.linspace(1.0, 2.0, 6)
    scaled = line.range(weights)
    assert np.allclose(scaled.basis @ scaled.reduced, weights[:, None] * line.matrix, atol=1e-9)
    assert line.range(weights.copy()) is scaled
    assert line.range(2 * weights) is not scaled
