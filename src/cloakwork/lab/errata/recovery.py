"""Mistakes about the way back from readings to sources."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from cloakwork._checks import FloatArray
from cloakwork.lab.errata.erratum import Erratum, Part, Promise, share_of
from cloakwork.lab.experiment import stream
from cloakwork.lab.scenes import line, line_cloak
from cloakwork.recovery import BasisPursuit, Bregman, Radius, Status, recover

PART = Part.RECOVERY
FRAMES, QUICK_FRAMES = 1000, 200
MIDDLE = 49  # the place 0.5


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """On the line of the papers' first figures with one source in the middle, at (1, 0.1)."""
    frames = QUICK_FRAMES if quick else FRAMES
    truth = np.zeros((frames, line().places))
    truth[:, MIDDLE] = 1.0
    noisy = line_cloak().simulate(line().apply(truth), rng=stream(*key, 0))
    printed = recover(noisy, line_cloak(), estimator=BasisPursuit(radius=Radius.PAPER))
    share, error = share_of(sum(status == Status.BEST_FIT for status in printed.status), frames)
    m = line().sensors
    yield Erratum(
        PART,
        "Gilbert and McMillan, Algorithm 1",
        "with radius sigma sqrt(m) the truth is feasible with high probability",
        f"how often the noise is within the radius, m = {m}",
        Promise.AT_LEAST,
        0.9,
        float(stats.chi2.cdf(m, m)),
        "high probability is a coin; 0.9 is taken for it here",
    )
    yield Erratum(
        PART,
        "Gilbert and McMillan, Algorithm 1",
        "there is an f in the box within the radius",
        "share of frames with no solution at all",
        Promise.AT_MOST,
        0.1,
        share,
        "nothing is recovered from these frames; 0.1 is taken for low probability here",
        error,
    )
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
