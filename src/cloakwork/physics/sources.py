"""From a list of positions to a vector of sources."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.physics.base import Physics


def sources(physics: Physics, at: Sequence[object], weights: ArrayLike | None = None) -> FloatArray:
    """A map with sources at the given positions (or nodes), shape (n,).

    Parameters
    ----------
    at
        Positions: numbers on a line, (x, y) on a plane or floor plan, node names on a graph.
        Each source is put on the nearest place.
    weights
        Strength of each source; 1 when left out. Zero or more.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> sources(HeatLine(n=4, m=2, T=0.1), [0.25, 1.0]).tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    if isinstance(at, str) or not isinstance(at, Sequence | np.ndarray):
        raise InputError(f"at={at!r}: give a list of positions, such as [{at!r}].", at=at)
    given = np.ones(len(at)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != (len(at),):
        raise InputError(f"{len(at)} positions but weights of shape {given.shape}: give one weight a position.")
    bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
    if len(bad):
        raise InputError(f"weights[{bad[0]}] is {given[bad[0]]}: a source's weight is finite and 0 or above.")
    places = [physics.space.index(position) for position in at]
    return np.bincount(np.array(places, dtype=np.int64), weights=given, minlength=physics.places).astype(np.float64)
