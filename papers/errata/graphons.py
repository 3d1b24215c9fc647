"""Mistakes about estimating networks."""

import math
from collections.abc import Iterator

from papers.errata.erratum import Erratum, Part, Promise

PART = Part.GRAPHONS


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """Worked out, not measured."""
    del quick, key
    for rho in (0.01, 0.001):
        yield _divergence(rho)
    yield from _norms()


def _divergence(rho: float) -> Erratum:
    """Lemma 5.2 for one pair of nodes, at the probabilities that (5.9) gives them.

    The lemma sums over ordered pairs, so an edge has 16 (p - q)^2.
    """
    c = 0.1
    p, q = rho * (0.5 + c), rho * (0.5 - c)
    true = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    return Erratum(
        PART,
        "McMillan, Lemma 5.2 in (5.10)",
        "D <= 8 n^2 ||W - W'||^2, used where W is not within [1/4, 3/4]",
        f"divergence of one edge, rho = {rho:g}, between rho/2 +- {c:g} rho",
        Promise.AT_MOST,
        16 * (p - q) ** 2,
        true,
        "short by about 1/rho; the theorem survives",
    )


def _norms() -> Iterator[Erratum]:
    """The largest that the left sides can be, with H and its estimate in [0, 1], against what they are said to be."""
    n, k, rho = 1000, 10, 0.1
    dense = math.sqrt(k**2 / n**2 + math.log(k) / n)
    sparse = min(math.sqrt(rho * (k**2 / n**2 + math.log(k) / n)), rho)
    for where, right, largest in (("(4.13)", dense, 1.0), ("(4.14)", sparse, rho)):
        yield Erratum(
            PART,
            f"McMillan, {where}",
            "E ||M^ - H||_2 / n^2 is of the order of the root of k^2/n^2 + log k/n",
            f"largest possible ||M^ - H||_2 / n^2, n = {n}, k = {k}, entries up to {largest:g}",
            Promise.AT_LEAST,
            right,
            largest * n / n**2,
            "meant are ||M^ - H||_2^2 / n^2 and no root",
        )
