"""Mistakes about what is measured and how sources are recovered, and assumptions of the model."""

import math
from collections.abc import Iterator

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.physics import HeatLine, HeatPlane, Placement
from cloakwork.privacy import sensitivity
from cloakwork.recovery import BasisPursuit, Bregman, Status, recover
from papers.errata.erratum import AT_MOST, EQUAL, erratum
from papers.experiment import Run, stream
from papers.rows import Mean, Row
from papers.trials import Setting

N, M, T = 100, 50, 0.05
SPREAD = 2.0
FRAMES, QUICK_FRAMES, PROBE_FRAMES = 1000, 200, 4
MIDDLE = 49  # the place 0.5


def physics(run: Run, key: tuple[int, ...]) -> Iterator[Row]:
    """None of them needs chance, or time."""
    del run, key
    yield from _matrix()
    yield from _time()
    yield from _between()
    yield _plane()


def _matrix() -> Iterator[Row]:
    places, sensors = np.arange(1, N + 1) / N, np.arange(1, M + 1) / M
    printed = np.exp(-((places[:, None] - sensors) ** 2) / (4 * T))  # A_ij = g(i/n - j/m): i counts places
    yield erratum(
        "Gilbert and McMillan, section 4",
        "y = A f with A_ij = g(i/n - j/m)",
        f"columns of A at n = {N}, m = {M}, and entries of f",
        (EQUAL, printed.shape[1], HeatLine(n=N, m=M, T=T).places),
        "A must be transposed: rows are sensors",
    )


def _time() -> Iterator[Row]:
    """A pulse is steeper the sooner it is read."""
    late = sensitivity(HeatLine(n=N, m=M, T=T), alpha=1 / N)
    for part in (0.4, 0.1):
        yield erratum(
            "Gilbert and McMillan, section 4",
            "a source emits one pulse, which is read at time T",
            f"Delta of a reading {part:g} T after emission",
            (AT_MOST, late, sensitivity(HeatLine(n=N, m=M, T=part * T), alpha=1 / N)),
            "people emit continuously, so the noise is too small to hide them",
            assumed=True,
        )


def _between() -> Iterator[Row]:
    for n, late in ((N, T), (10, 1e-3)):
        grid = HeatLine(n=n, m=M, T=late)
        anywhere = HeatLine(n=n, m=M, T=late, placement=Placement.ANYWHERE)
        yield erratum(
            "Gilbert and McMillan, section 4",
            "sources are on the grid 1/n, ..., 1",
            f"steepest slope for sources anywhere, n = {n}, T = {late:g}",
            (AT_MOST, grid.moves().steepest().value, anywhere.moves().steepest().value),
            "the noise is too small to hide sources between places",
            assumed=True,
        )


def _plane() -> Row:
    """One sensor in a corner, and heat that has spread: it falls off fastest in the corner across, on the diagonal."""
    plane = HeatPlane(n=(20, 20), m=[(0.0, 0.0)], T=SPREAD)
    columns = plane.matrix.reshape(20, 20)
    step = 1 / 20
    adjacent = max(float(np.abs(np.diff(columns, axis=axis)).max()) for axis in (0, 1)) / step
    corners = columns[1:, 1:] - columns[:-1, :-1], columns[1:, :-1] - columns[:-1, 1:]
    diagonal = max(float(np.abs(one).max()) for one in corners) / (step * math.sqrt(2))
    return erratum(
        "Gilbert and McMillan, Proposition 5",
        "Delta is the maximum over neighbours, in any metric",
        f"steepest slope on a plane with Euclidean distance, one sensor, T = {SPREAD:g}",
        (AT_MOST, adjacent, diagonal),
        "true only if distance is the shortest path over neighbours; otherwise diagonal moves get too little noise",
    )


def recovery(run: Run, key: tuple[int, ...]) -> Iterator[Row]:
    """On the line of the papers' first figures with one source in the middle, at (1, 0.1)."""
    frames = run.choose(FRAMES, QUICK_FRAMES, PROBE_FRAMES)
    truth = np.zeros((frames, Setting().line.places))
    truth[:, MIDDLE] = 1.0
    noisy = Setting().cloak().simulate(Setting().line.apply(truth), rng=stream(*key, 0))
    yield _bregman(noisy)


def _bregman(noisy: FloatArray) -> Row:
    """Totals of Bregman iteration over those of R, at the same radius, where both fit within it."""
    totals, fits = [], []
    for estimator in (Bregman(), BasisPursuit()):
        found = recover(noisy, Setting().cloak(), estimator=estimator)
        totals.append(found.map.sum(axis=1))
        fits.append(np.array([status in {Status.SOLVED, Status.REACHED} for status in found.status]))
    both = fits[0] & fits[1]
    ratios = totals[0][both] / totals[1][both]
    return erratum(
        "McMillan, section 8.1.2",
        "Bregman iteration converges to the solution of R",
        "total weight of its map over the least total within the same radius",
        (EQUAL, 1.0, Mean.of(ratios)),
        "a different estimator, not a solver of R",
    )
