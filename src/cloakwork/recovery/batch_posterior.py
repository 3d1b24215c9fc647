"""Posteriors of many frames at once, by the array library of the readings.

It imports no more than a machine with a GPU has, so `benchmarks/gpu.py` can load it alone.
"""

import sys
from dataclasses import dataclass
from typing import Any

from cloakwork.errors import InputError

LARGEST = 600.0  # inner product of two whitened columns; e to the minus of more is too near to 0


@dataclass(frozen=True, eq=False)
class BatchPosterior:
    """Probabilities of 0, 1, ... sources (frames, max_sources + 1), and the expected number at each place (frames, n).

    >>> from cloakwork.physics import HeatLine
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> found = batch_posterior(line.matrix[:, [9, 29]].T, line.matrix, 0.3)
    >>> found.counts.argmax(axis=1).tolist(), found.intensity.argmax(axis=1).tolist()
    ([1, 1], [9, 29])
    """

    counts: Any
    intensity: Any

    def __repr__(self) -> str:
        return f"BatchPosterior({len(self.counts)} frames)"


def batch_posterior(readings: Any, columns: Any, sigma: float, *, max_sources: int = 2) -> BatchPosterior:
    """Weigh all placements of up to `max_sources` (1 or 2) for each frame, with the library of the arrays given.

    `readings` (frames, m) and `columns` (m, n), the matrix of the physics, are arrays of one library: NumPy, CuPy or
    PyTorch, in double precision. The results are arrays of the same library on the same device. The prior is that of
    `PointSources(1.0, max_sources=max_sources)`: uniform over counts, with independent uniform places.

    Notes
    -----
    With g_i the gain of log likelihood of a source at i, and G the inner products of whitened columns, two sources have
    a weight of exp(g_i) exp(-G_ij) exp(g_j) / n^2. For all pairs and frames together that is one product of matrices.

    >>> import numpy as np
    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> found = batch_posterior(line.apply(sources(line, [0.3]))[None], line.matrix, 0.3)
    >>> int(found.counts[0].argmax()), int(found.intensity[0].argmax()) + 1
    (1, 30)
    """
    library: Any = sys.modules[type(readings).__module__.partition(".")[0]]
    if type(columns) is not type(readings) or str(readings.dtype)[-7:] != "float64" or columns.dtype != readings.dtype:
        given = f"{type(readings).__name__} of {readings.dtype} and {type(columns).__name__} of {columns.dtype}"
        raise InputError(f"{given}: give arrays of one library in double precision.", arrays=given)
    if max_sources not in (1, 2):
        raise InputError(
            f"max_sources={max_sources!r}: batches have at most 1 or 2 sources; PointSources takes more.",
            max_sources=max_sources,
        )
    white = columns * (1 / sigma)
    overlap = white.T @ white
    largest = float(library.amax(overlap))
    if not largest <= LARGEST:
        raise InputError(
            f"sigma={sigma!r} is too small for a batch: a source has a squared signal of {largest:.3g} times that of "
            f"the noise, and at most {LARGEST:g} is possible. Use PointSources.",
            sigma=sigma,
        )
    n = len(overlap)
    gain = readings @ white / sigma - library.diagonal(overlap) / 2
    top = library.amax(gain, axis=1, keepdims=True)
    top = library.where(top > 0, top, top * 0)
    one = library.exp(gain - top) / n
    empty = library.exp(-top)
    weights = [empty, library.sum(one, axis=1, keepdims=True)]  # relative to exp(top)
    places = one
    if max_sources == 2:
        two = one * (one @ library.exp(-overlap))
        # two sources are relative to exp(2 top): bring both to the larger scale
        weights = [empty * empty, empty * weights[1], library.sum(two, axis=1, keepdims=True)]
        places = empty * one + 2 * two
    total = sum(weights[1:], weights[0])
    counts = library.concatenate(weights, axis=1) / total
    return BatchPosterior(counts, places / total)
