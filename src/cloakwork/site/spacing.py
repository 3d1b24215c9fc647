"""Sensors spread evenly over a space."""

import numpy as np
from scipy import spatial
from scipy.cluster import vq

from cloakwork._checks import IntArray
from cloakwork.errors import SiteError
from cloakwork.physics import Space


def even_places(space: Space, number: int) -> IntArray:
    """`number` different places, spread evenly: on a lattice, or far apart and then each in the middle of its own."""
    if number > len(space):
        raise SiteError(f"sensors = {number}: there are only {len(space)} places.", sensors=number)
    lattice = _lattice(space, number)
    if lattice is not None:
        return lattice
    chosen = [0]
    nearest = space.distances(0)
    while len(chosen) < number:
        farthest = int(np.argmax(nearest))
        chosen.append(farthest)
        nearest = np.minimum(nearest, space.distances(farthest))
    if space.places.shape[1] == 0 or number == len(space):
        return np.array(sorted(chosen), dtype=np.int64)
    centres, _ = vq.kmeans2(space.places, space.places[chosen], minit="matrix", iter=20, missing="warn")
    places: list[int] = []
    for centre in centres:
        order = np.argsort(((space.places - centre) ** 2).sum(axis=1), kind="stable")
        places.append(next(int(place) for place in order if int(place) not in places))
    return np.array(sorted(places), dtype=np.int64)


def _lattice(space: Space, number: int) -> IntArray | None:
    """A rectangular lattice of exactly `number` places, if all of its points are on the floor and none is stretched."""
    if space.places.shape[1] != 2 or not len(space.lengths):
        return None
    half = float(space.lengths.min()) / 2
    low, high = space.places.min(axis=0) - half, space.places.max(axis=0) + half
    width, height = high - low
    columns = [c for c in range(1, number + 1) if number % c == 0]
    best = min(columns, key=lambda c: abs(np.log((width / c) / (height / (number // c)))))
    steps = np.array([width / best, height / (number // best)])
    if not 0.5 < steps[0] / steps[1] < 2:
        return None
    x, y = np.meshgrid(np.arange(best) + 0.5, np.arange(number // best) + 0.5, indexing="ij")
    points = low + np.stack([x.ravel(), y.ravel()], axis=1) * steps
    # a hair off the middle, so that a point between cells always takes the same one of them
    distances, nearest = (np.asarray(k) for k in spatial.KDTree(space.places).query(points - 1e-6 * half))
    places = np.unique(nearest).astype(np.int64)
    on_floor = distances.max() <= np.sqrt(2) * 1.01 * half
    return places if on_floor and len(places) == number else None
