"""Mistakes about what is measured, and what the model of it leaves out."""

import math
from collections.abc import Iterator

import numpy as np

from cloakwork.physics import HeatLine, HeatPlane, Placement
from cloakwork.privacy import sensitivity
from papers.errata.erratum import Erratum, Part, Promise

N, M, T = 100, 50, 0.05
SPREAD = 2.0
PART = Part.PHYSICS


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """None of them needs chance, or time."""
    del quick, key
    yield from _matrix()
    yield from _time()
    yield from _between()
    yield _plane()


def _matrix() -> Iterator[Erratum]:
    places, sensors = np.arange(1, N + 1) / N, np.arange(1, M + 1) / M
    printed = np.exp(-((places[:, None] - sensors) ** 2) / (4 * T))  # A_ij = g(i/n - j/m): i counts places
    yield Erratum(
        PART,
        "Gilbert and McMillan, section 4",
        "y = A f with A_ij = g(i/n - j/m)",
        f"columns of A at n = {N}, m = {M}, against entries of f",
        Promise.EQUAL,
        printed.shape[1],
        HeatLine(n=N, m=M, T=T).places,
        "A has to be transposed: rows are sensors",
    )


def _time() -> Iterator[Erratum]:
    """A pulse is steeper the sooner it is read."""
    late = sensitivity(HeatLine(n=N, m=M, T=T), alpha=1 / N)
    for part in (0.4, 0.1):
        yield Erratum(
            PART,
            "Gilbert and McMillan, section 4",
            "a source emits one pulse, which is read at T",
            f"Delta of a reading {part:g} T after the emission",
            Promise.AT_MOST,
            late,
            sensitivity(HeatLine(n=N, m=M, T=part * T), alpha=1 / N),
            "a person goes on emitting, and is hidden by too little noise",
            assumed=True,
        )


def _between() -> Iterator[Erratum]:
    for n, late in ((N, T), (10, 1e-3)):
        grid = HeatLine(n=n, m=M, T=late)
        anywhere = HeatLine(n=n, m=M, T=late, placement=Placement.ANYWHERE)
        yield Erratum(
            PART,
            "Gilbert and McMillan, section 4",
            "sources are on the grid 1/n, ..., 1",
            f"slope where sources are anywhere, n = {n}, T = {late:g}",
            Promise.AT_MOST,
            grid.joint_slope().value,
            anywhere.joint_slope().value,
            "sources between places are hidden by too little noise",
            assumed=True,
        )


def _plane() -> Erratum:
    """One sensor in a corner, and heat that has spread: it falls off fastest in the corner across, on the diagonal."""
    plane = HeatPlane(n=(20, 20), m=[(0.0, 0.0)], T=SPREAD)
    columns = plane.matrix.reshape(20, 20)
    step = 1 / 20
    adjacent = max(float(np.abs(np.diff(columns, axis=axis)).max()) for axis in (0, 1)) / step
    corners = columns[1:, 1:] - columns[:-1, :-1], columns[1:, :-1] - columns[:-1, 1:]
    diagonal = max(float(np.abs(one).max()) for one in corners) / (step * math.sqrt(2))
    return Erratum(
        PART,
        "Gilbert and McMillan, Proposition 5",
        "Delta is the largest over neighbours, in any metric",
        f"slope on a plane with Euclidean distance, one sensor, T = {SPREAD:g}",
        Promise.AT_MOST,
        adjacent,
        diagonal,
        "holds if distance is the shortest way over neighbours: else a move along the diagonal is hidden too little",
    )
