"""Mechanisms to audit: honest ones at the boundary of their claims, and broken ones of practice and of the literature.

Each is called as (database, size, rng) and gives `size` reports. Floating-point noise itself leaks by its low bits, so
noisy numbers are rounded to a grid that both inputs lie on, unless the grid is what is wrong.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloakwork.physics import HeatLine
from cloakwork.privacy import Cloak, largest_mu

Rng: TypeAlias = np.random.Generator
Reports: TypeAlias = NDArray[Any]
Mechanism: TypeAlias = Callable[[int, int, Rng], Reports]
GRID = 2.0**-10


@dataclass(frozen=True)
class Case:
    """A mechanism, what it claims, and whether the claim is true."""

    name: str
    mechanism: Mechanism
    epsilon: float
    delta: float = 0.0
    private: bool = False


def on_grid(values: Reports) -> Reports:
    return np.round(values / GRID) * GRID


def laplace(scale: float) -> Mechanism:
    return lambda database, size, rng: on_grid(database + rng.laplace(scale=scale, size=size))


def gaussian(sigma: float) -> Mechanism:
    return lambda database, size, rng: on_grid(database + rng.normal(scale=sigma, size=size))


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The smallest standard deviation that meets the claim at sensitivity 1."""
    return 1.0 / largest_mu(epsilon, delta)


def clamped_laplace(database: int, size: int, rng: Rng) -> Reports:
    return np.clip(on_grid(database + rng.laplace(size=size)), -1.0, 2.0)


def randomised_response(database: int, size: int, rng: Rng) -> Reports:
    truth = rng.random(size) < math.e / (1 + math.e)
    return np.where(truth, database, 1 - database)


@lru_cache
def _cloak() -> tuple[Cloak, Reports]:
    line = HeatLine(n=20, m=4, T=0.05)
    cloak = Cloak(line, epsilon=1.0, delta=1e-2, alpha=0.05)
    steps = np.linalg.norm(np.diff(line.matrix, axis=1), axis=0)
    worst = int(np.argmax(steps))
    return cloak, line.matrix[:, [worst, worst + 1]].T


def cloaked(database: int, size: int, rng: Rng) -> Reports:
    """Our own mechanism, on the two neighbouring places that are hardest to hide."""
    cloak, readings = _cloak()
    return cloak.to_steps(cloak.simulate(np.tile(readings[database], (size, 1)), rng=rng))


def truncated(database: int, size: int, rng: Rng) -> Reports:
    """Noise is cut off at 4, so that outputs beyond 4 prove input 1."""
    return on_grid(database + np.clip(rng.laplace(size=size), -4.0, 4.0))


def resampled(database: int, size: int, rng: Rng) -> Reports:
    """Noise beyond 6 is drawn again, until it is not."""
    noise = rng.laplace(size=size)
    while (far := np.abs(noise) > 6.0).any():
        noise[far] = rng.laplace(size=int(far.sum()))
    return on_grid(database + noise)


def scale_of_the_data(database: int, size: int, rng: Rng) -> Reports:
    """The noise follows the local sensitivity, and so tells which data it hides."""
    return on_grid(rng.laplace(scale=(1.0, 1.25)[database], size=size) + database)


def shifted_lattice(database: int, size: int, rng: Rng) -> Reports:
    """Noise in whole steps of 0.1 on readings that are not."""
    return (0.0, 0.537)[database] + 0.1 * np.round(rng.laplace(size=size) / 0.1)


def shared_noise(database: int, size: int, rng: Rng) -> Reports:
    """Two readings with one noise: their difference is bare."""
    noise = rng.laplace(size=size)
    return on_grid(np.stack([database + noise, 3.0 + noise], axis=1))


def modulo_coin(database: int, size: int, rng: Rng) -> Reports:
    """Tells the truth when a byte modulo 100 is below 75: in 80.5 % of reports."""
    truth = rng.integers(256, size=size) % 100 < 75
    return np.where(truth, database, 1 - database)


def fault_code(database: int, size: int, rng: Rng) -> Reports:
    """One reading in 500 fails, and only the warm room has the failure that is called E7."""
    found = np.char.mod("%.1f", np.round(database + rng.laplace(size=size), 1)).astype(object)
    failed = rng.random(size) < 0.002
    found[failed] = ("E1", "E7")[database]
    return found


def sometimes_less(database: int, size: int, rng: Rng) -> Reports:
    """One report in 20 has a fifth of the noise."""
    scale = np.where(rng.random(size) < 0.05, 0.2, 1.0)
    return on_grid(database + scale * rng.laplace(size=size))


def rappor(database: int, size: int, rng: Rng) -> Reports:
    """A Bloom filter of 16 bits, each flipped with chance 1/4: four bits differ, at a cost of 4 ln 3."""
    bits = np.zeros(16, dtype=np.int64)
    bits[[2, 9] if database else [4, 13]] = 1
    return np.where(rng.random((size, 16)) < 0.25, 1 - bits, bits)


def _queries(database: int) -> Reports:
    """Ten queries that each differ by 1."""
    return np.array([1.0] * 5 + [0.0] * 5) if database else np.array([0.0] * 5 + [1.0] * 5)


@dataclass(frozen=True)
class SparseVector:
    """The six sparse-vector techniques of Lyu, Su and Li (2017), with threshold 0.5 and sensitivity 1.

    A row has 1 for above, 0 for below, -1 after the cut-off (0: none); numbers on the grid, 10 added, where the value
    itself is given out. `fresh` draws the noise of the threshold again after each answer above it.
    """

    threshold_scale: float
    query_scale: float
    cut_off: int = 0
    values: bool = False
    fresh: bool = False

    def __call__(self, database: int, size: int, rng: Rng) -> Reports:
        noisy = _queries(database) + self.query_scale * rng.laplace(size=(size, 10))
        threshold = 0.5 + self.threshold_scale * rng.laplace(size=size)
        found = np.full(noisy.shape, -1.0)
        answered = np.zeros(size, dtype=np.int64)
        for place in range(noisy.shape[1]):
            going = answered < self.cut_off if self.cut_off else np.full(size, fill_value=True)
            above = noisy[:, place] >= threshold
            answer = 10.0 + on_grid(noisy[:, place]) if self.values else np.ones(size)
            found[going, place] = np.where(above, answer, 0.0)[going]
            answered += above & going
            if self.fresh:
                threshold = np.where(above, 0.5 + self.threshold_scale * rng.laplace(size=size), threshold)
        return found


def noisy_max(*, exponential: bool, value: bool, epsilon: float) -> Mechanism:
    """Of five counts report the place of the largest noisy one, as it should be, or its value."""
    counts = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]] if value else [[2, 1, 1, 1, 1], [1, 2, 2, 2, 2]])

    def mechanism(database: int, size: int, rng: Rng) -> Reports:
        shape = (size, 5)
        noise = rng.exponential(2 / epsilon, shape) if exponential else rng.laplace(scale=2 / epsilon, size=shape)
        noisy = counts[database] + noise
        return on_grid(noisy.max(axis=1)) if value else noisy.argmax(axis=1)

    return mechanism


def histogram(scale: float) -> Mechanism:
    """Five counts, of which the first differs by 1."""
    return lambda database, size, rng: on_grid(
        np.array([database, 1, 1, 1, 1]) + rng.laplace(scale=scale, size=(size, 5))
    )


def boundary_cases() -> list[Case]:
    """Honest mechanisms that just meet their claims: any alarm is false."""
    return [
        Case("Laplace", laplace(1.0), 1.0, private=True),
        Case("Gaussian", gaussian(gaussian_sigma(1.0, 1e-2)), 1.0, 1e-2, private=True),
        Case("clamped Laplace", clamped_laplace, 1.0, private=True),
        Case("randomised response", randomised_response, 1.0, private=True),
        Case("our cloak", cloaked, 1.0, 1e-2, private=True),
    ]


def broken_cases() -> list[Case]:
    """Mistakes of practice, each to be found within 500,000 reports per input."""
    return [
        Case("Laplace noise 3 % too small", laplace(0.97), 1.0),
        Case("variance for standard deviation", gaussian(math.sqrt(gaussian_sigma(1.0, 1e-5))), 1.0, 1e-5),
        Case("truncated noise", truncated, 1.0),
        Case("resampled noise", resampled, 1.0),
        Case("sparse vector without cut-off", SparseVector(2.0, 2.0), 1.0),
        Case("RAPPOR at half its cost", rappor, 2 * math.log(3)),
        Case("scale that depends on the data", scale_of_the_data, 1.0),
        Case("shifted lattice", shifted_lattice, 1.0),
        Case("two outputs, one noise", shared_noise, 2.0),
        Case("coin from a modulo", modulo_coin, math.log(3)),
        Case("fault code", fault_code, 1.0),
        Case("mixture with less noise", sometimes_less, 1.0),
    ]


def literature_cases() -> list[Case]:
    """What rivals are compared on: Lyu, Su and Li (2017), Ding et al. (2018), Erlingsson et al. (2014)."""
    max_of = [
        Case(
            f"noisy max, {law}, {what}",
            noisy_max(exponential=exponential, value=value, epsilon=1.0),
            1.0,
            0.0,
            not value,
        )
        for law, exponential in (("Laplace", False), ("exponential", True))
        for what, value in (("place", False), ("value", True))
    ]
    return [
        *max_of,
        Case("histogram", histogram(1.0), 1.0, private=True),
        Case("histogram, epsilon for 1/epsilon", histogram(0.5), 0.5),
        Case("SVT 1", SparseVector(2.0, 8.0, cut_off=2), 1.0, private=True),
        Case("SVT 2", SparseVector(4.0, 8.0, cut_off=2, fresh=True), 1.0, private=True),
        Case("SVT 3", SparseVector(2.0, 2.0, cut_off=1, values=True), 1.0),
        Case("SVT 4", SparseVector(4.0, 4 / 3, cut_off=1), 1.0),
        Case("SVT 5", SparseVector(2.0, 0.0), 1.0),
        Case("SVT 6", SparseVector(2.0, 2.0), 1.0),
        Case("RAPPOR", rappor, 4 * math.log(3), private=True),
        Case("RAPPOR at half its cost", rappor, 2 * math.log(3)),
    ]
