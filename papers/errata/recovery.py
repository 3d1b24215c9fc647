"""Mistakes about the way back from readings to sources."""

from collections.abc import Iterator

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.recovery import BasisPursuit, Bregman, Status, recover
from papers.errata.erratum import Erratum, Part, Promise
from papers.experiment import stream
from papers.scenes import line, line_cloak

PART = Part.RECOVERY
FRAMES, QUICK_FRAMES = 1000, 200
MIDDLE = 49  # the place 0.5


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """On the line of the papers' first figures with one source in the middle, at (1, 0.1)."""
    frames = QUICK_FRAMES if quick else FRAMES
    truth = np.zeros((frames, line().places))
    truth[:, MIDDLE] = 1.0
    noisy = line_cloak().simulate(line().apply(truth), rng=stream(*key, 0))
    yield _bregman(noisy)


def _bregman(noisy: FloatArray) -> Erratum:
    """Totals of Bregman iteration over those of R, at the same radius, where both fit within it."""
    totals, fits = [], []
    for estimator in (Bregman(), BasisPursuit()):
        found = recover(noisy, line_cloak(), estimator=estimator)
        totals.append(found.map.sum(axis=1))
        fits.append(np.array([status in {Status.SOLVED, Status.REACHED} for status in found.status]))
    both = fits[0] & fits[1]
    ratios = totals[0][both] / totals[1][both]
    return Erratum(
        PART,
        "McMillan, section 8.1.2",
        "Bregman iteration converges to the answer of R",
        "total of its map over the least total within the same radius",
        Promise.EQUAL,
        1.0,
        float(ratios.mean()),
        "another estimator, not a solver of R",
        float(ratios.std(ddof=1) / np.sqrt(len(ratios))),
    )
