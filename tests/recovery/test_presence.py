"""Presence over time from randomised bits, against sums over all histories."""

import itertools
import math

import numpy as np
import pytest

import cloakwork as cw

STAY, SHARE, SEEN = 0.8, 0.3, (0.1, 0.7)


def by_all_histories(reports: np.ndarray, flip: cw.Flip) -> np.ndarray:
    """The probability of presence at each time, by brute force."""
    come = (1 - STAY) * SHARE / (1 - SHARE)
    moves = np.array([[1 - come, come], [1 - STAY, STAY]])
    total, there = 0.0, np.zeros(len(reports))
    for history in itertools.product((0, 1), repeat=len(reports)):
        weight = SHARE if history[0] else 1 - SHARE
        weight *= math.prod(moves[a, b] for a, b in itertools.pairwise(history))
        for state, row in zip(history, reports, strict=True):
            for report in row[row >= 0]:
                bit = SEEN[state]
                weight *= (1 - bit) * flip.likelihood[0, report] + bit * flip.likelihood[1, report]
        total += weight
        there += weight * np.array(history)
    return there / total


def test_presence_is_the_exact_posterior_with_several_sensors_and_missing_reports() -> None:
    flip = cw.Flip(epsilon=1.5, readings_per_window=1)
    reports = np.array([[0, 1], [1, -1], [1, 1], [-1, -1], [0, 1], [0, 0], [1, 0]])
    assert cw.presence(reports, flip, stay=STAY, share=SHARE, seen=SEEN) == pytest.approx(
        by_all_histories(reports, flip), abs=1e-12
    )


def test_presence_is_calibrated() -> None:
    rng = np.random.default_rng(5)
    flip = cw.Flip(epsilon=1.0, readings_per_window=1)
    n, come = 40_000, 0.02 * 0.3 / 0.7
    there = np.zeros(n, dtype=int)
    for k in range(1, n):
        there[k] = rng.random() < (0.98 if there[k - 1] else come)
    stated = cw.presence(flip.simulate(there, rng=rng), flip, stay=0.98, share=0.3)
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (stated >= low) & (stated < low + 0.2)
        assert there[inside].mean() == pytest.approx(stated[inside].mean(), abs=0.06)


@pytest.mark.parametrize(
    ("reports", "settings"),
    [
        ([0, 2], {}),
        ([0.5], {}),
        ([0, 1], {"stay": 1.0}),
        ([0, 1], {"stay": 0.1, "share": 0.9}),
        ([0], {"seen": (2, 1)}),
        ([0], {"stay": "20min"}),
        ([0], {"flip": 2.0}),
    ],
)
def test_impossible_settings_are_refused(reports: list[float], settings: dict[str, float]) -> None:
    flip = cw.Flip(epsilon=1.0, readings_per_window=1)
    with pytest.raises(cw.InputError):
        cw.presence(reports, **{"flip": flip, "stay": 0.9, **settings})  # type: ignore[arg-type]
