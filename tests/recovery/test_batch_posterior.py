"""Batches of frames: the same probabilities as the sum over all placements."""

import numpy as np
import pytest

from cloakwork.errors import InputError
from cloakwork.physics import HeatLine, sources
from cloakwork.recovery import PointSources, batch_posterior, recover

LINE = HeatLine(n=40, m=20, T=0.05)


@pytest.mark.parametrize("most", [1, 2])
def test_a_batch_has_the_probabilities_of_all_placements(most: int) -> None:
    scenes = np.stack([sources(LINE, at) for at in ([], [0.3], [0.25, 0.7], [0.5, 0.525])])
    readings = LINE.apply(scenes) + 0.4 * np.random.default_rng(3).standard_normal((4, 20))
    found = batch_posterior(readings, LINE.matrix, 0.4, max_sources=most)
    if most == 2:  # with one source at most, the frames with two do not fit, and PointSources widens the noise
        exact = recover(readings, LINE, sigma=0.4, estimator=PointSources(1.0, max_sources=most))
        assert found.counts == pytest.approx(exact.counts, abs=1e-9)
    columns = LINE.matrix / 0.4
    alone = readings / 0.4 @ columns - (columns**2).sum(axis=0) / 2
    one, two = np.exp(alone) / 40, np.exp(alone[:, :, None] + alone[:, None] - columns.T @ columns) / 1600
    total = 1 + one.sum(axis=1) + (two.sum(axis=(1, 2)) if most == 2 else 0)
    intensity = (one + (2 * two.sum(axis=2) if most == 2 else 0)) / total[:, None]
    assert found.intensity == pytest.approx(intensity, abs=1e-9)


def test_a_library_behind_the_arrays_gives_the_same_numbers() -> None:
    torch = pytest.importorskip("torch")
    readings = np.random.default_rng(4).standard_normal((5, 20))
    ours = batch_posterior(readings, LINE.matrix, 0.5)
    theirs = batch_posterior(torch.tensor(readings), torch.tensor(LINE.matrix.copy()), 0.5)
    assert isinstance(theirs.counts, torch.Tensor)
    assert theirs.counts.numpy() == pytest.approx(ours.counts, abs=1e-9)
    assert theirs.intensity.numpy() == pytest.approx(ours.intensity, abs=1e-9)


def test_what_a_batch_cannot_weigh_is_refused() -> None:
    readings = np.zeros((1, 20))
    with pytest.raises(InputError, match="at most 1 or 2"):
        batch_posterior(readings, LINE.matrix, 0.5, max_sources=3)
    with pytest.raises(InputError, match="too small"):
        batch_posterior(readings, LINE.matrix, 0.01)
    with pytest.raises(InputError, match="double precision"):
        batch_posterior(readings.astype(np.float32), LINE.matrix, 0.5)
