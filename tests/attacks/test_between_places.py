"""Attack: sources between the places of a site that says nothing about where sources may be.

A planned site covers sources between its places by default. On a line they may be anywhere; in a network and for a
matrix a source between two neighbours counts as shared by both. The readings are computed here, not by the package.
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, stats

import cloakwork as cw
from cloakwork.site import parse_site
from tests.attacks.conftest import Attack

Floats = NDArray[np.float64]


def compare(attack: Attack, cloak: cw.Cloak, columns: Floats, distances: Floats) -> None:
    """Compare the shifts of many moves, (m, moves), per length with the cloak's slope, before any rounding."""
    claimed = cloak.allowance.cost(cloak.sigmas, np.zeros_like(cloak.sigmas)) / cloak.alpha
    attack.compare(np.linalg.norm(columns / cloak.sigmas[:, None], axis=0) / distances, claimed)


def test_a_line_of_the_documentation(attack: Attack, rng: np.random.Generator) -> None:
    """The line of the page on devices, and coarser ones, with moves between any two nearby positions."""
    text = Path("docs/guides/build-a-device.md").read_text(encoding="utf-8")
    documented = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)[0]
    for places, T in ((20, 0.01), (10, 0.001), (40, 0.002))[: attack.size(2, 3)]:
        site = parse_site(documented.replace("places = 20", f"places = {places}").replace("0.01", f"{T}"))
        sensors = np.arange(1, 7) / 6
        start = rng.random(attack.size(20_000, 1_000_000))
        end = np.clip(start + rng.uniform(-1, 1, len(start)) * 10 ** rng.uniform(-5, -1.3, len(start)), 0, 1)
        moved = np.abs(end - start) > 1e-6
        before, after = (stats.norm.pdf(at[moved], loc=sensors[:, None], scale=np.sqrt(2 * T)) for at in (start, end))
        compare(attack, site.cloak(), after - before, np.abs(end - start)[moved])


def test_the_network_of_the_documentation(attack: Attack, rng: np.random.Generator) -> None:
    """The network of the page on site files, with sources on its edges, shared by the two ends of the edge."""
    text = Path("docs/reference/site-files.md").read_text(encoding="utf-8")
    (documented,) = (block for block in re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL) if '"feeders"' in block)
    site = parse_site(documented)
    nodes = ["pump", "hall", "store", "yard"]
    edges = [("pump", "hall", 1, 1), ("hall", "store", 2, 1), ("store", "yard", 1, 5), ("yard", "pump", 1, 1)]
    laplacian = np.zeros((4, 4))
    for u, v, weight, _ in edges:
        i, j = nodes.index(u), nodes.index(v)
        laplacian[[i, j], [i, j]] += weight
        laplacian[[i, j], [j, i]] -= weight
    columns = linalg.expm(-0.5 * laplacian)[[0, 2]]
    around = np.cumsum([0, *(length for *_, length in edges)])  # the edges form a ring of length 8
    ring = np.stack([np.interp(np.arange(0, 8, 1e-3), around, [*row, row[0]]) for row in columns])
    start = rng.integers(8000, size=attack.size(20_000, 1_000_000))
    steps = rng.integers(1, 4001, size=len(start))
    compare(
        attack,
        site.cloak(),
        ring[:, (start + steps) % 8000] - ring[:, start],
        np.asarray(steps * 1e-3, dtype=np.float64),
    )
