"""Mistakes about what is measured."""

import math
from collections.abc import Iterator

import numpy as np

from cloakwork.lab.errata.erratum import Erratum, Part, Promise
from cloakwork.physics import HeatLine, HeatPlane, Placement
from cloakwork.privacy import sensitivity

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
    yield _rate()


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
            "Gilbert and McMillan, section 1",
            "people are heat sources, and heat is a pulse read at T",
            f"Delta of a reading {part:g} T after the emission",
            Promise.AT_MOST,
            late,
            sensitivity(HeatLine(n=N, m=M, T=part * T), alpha=1 / N),
            "someone who goes on emitting is hidden by too little noise",
        )


def _between() -> Iterator[Erratum]:
    for n, late in ((N, T), (10, 1e-3)):
        grid = HeatLine(n=n, m=M, T=late)
        anywhere = HeatLine(n=n, m=M, T=late, placement=Placement.ANYWHERE)
        yield Erratum(
            PART,
            "Gilbert and McMillan, Proposition 5",
            "the largest step between places on a grid bounds every move",
            f"slope where sources are anywhere, n = {n}, T = {late:g}",
            Promise.AT_MOST,
            grid.joint_slope().value,
            anywhere.joint_slope().value,
            "sources between places are hidden by too little noise",
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
        "pairs of neighbours are enough",
        f"slope on a plane with Euclidean distance, one sensor, T = {SPREAD:g}",
        Promise.AT_MOST,
        adjacent,
        diagonal,
        "a move along the diagonal is hidden by too little noise",
    )


def _rate() -> Erratum:
    n, m, times = 1000, 500, (1e-4, 1e-3)
    early = [sensitivity(HeatLine(n=n, m=m, T=time), alpha=1 / n) for time in times]
    late = math.sqrt(m) / (n * times[1] ** 1.5) / (4 * math.sqrt(3 * math.pi))  # with the constant of large T
    return Erratum(
        PART,
        "Gilbert and McMillan, Figure 2c",
        "sqrt(m)/(n T^1.5) is tight in T",
        f"exponent of T between {times[0]:g} and {times[1]:g}",
        Promise.EQUAL,
        -1.5,
        math.log10(early[1] / early[0]),
        f"a bound only: {late / early[1]:.0f} times too much noise at T = {times[1]:g}",
    )
