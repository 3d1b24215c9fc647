"""Bregman iteration: it stops at the radius, its misfit never grows, and it is not basis pursuit."""

from itertools import pairwise

import numpy as np
import pytest

from cloakwork.errors import InputError
from cloakwork.physics import HeatLine, sources
from cloakwork.recovery import Bregman, Status, recover


def readings(line: HeatLine, frames: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    noise = 0.1 * np.random.default_rng(2).standard_normal((frames, 50))
    return np.asarray(line.apply(sources(line, [0.24, 0.76])) + noise)


def test_it_stops_at_the_radius_with_a_slightly_larger_total(line: HeatLine) -> None:
    y = readings(line, 40)
    exact, found = recover(y, line, sigma=0.1), recover(y, line, sigma=0.1, estimator=Bregman())
    both = [k for k in range(40) if exact.status[k] is Status.SOLVED and found.status[k] is Status.REACHED]
    assert len(both) >= 35
    basis, reduced = line.range().basis, line.range().reduced
    for k in both:
        misfit = np.linalg.norm(reduced @ found.map[k] - y[k] @ basis)
        assert misfit <= found.radius[k] * (1 + 1e-12)
        excess = found.map[k].sum() - exact.map[k].sum()
        assert excess >= -1e-9
        assert found.gap[k] == pytest.approx(excess, abs=1e-7)
    ratio = found.map[both].sum(axis=1) / exact.map[both].sum(axis=1)
    assert 1.005 < ratio.mean() < 1.07


def test_the_misfit_falls_with_every_iteration(line: HeatLine) -> None:
    y = readings(line, 1)[0]
    basis, reduced = line.range().basis, line.range().reduced
    misfits = []
    for most in range(1, 12):
        found = recover(y, line, sigma=0.1, estimator=Bregman(iterations=most))
        misfits.append(float(np.linalg.norm(reduced @ found.map - y @ basis)))
        if found.status is Status.REACHED:
            break
        assert found.status is Status.STOPPED
    assert len(misfits) > 2
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(misfits))


def test_frames_that_nothing_fits_get_the_best_fit(line: HeatLine) -> None:
    found = recover(-5 * np.ones(50), line, sigma=0.01, estimator=Bregman())
    assert found.status is Status.BEST_FIT


def test_no_iterations_are_refused() -> None:
    with pytest.raises(InputError):
        Bregman(iterations=0)
