"""Noise that sensors share: how well it locates one, two and three sources, against independent noise."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.demo import load_flat
from cloakwork.physics import FloorPlan, Rooms, Steady
from cloakwork.privacy import Cloak
from cloakwork.privacy.variance import Moves
from papers.drawing import INK, MARKERS, SERIES
from papers.experiment import Experiment, Run, pick, stream
from papers.result import Finding, Goal, Measure, Table, tabulate
from papers.statistics import Mean

CLAIM = {"epsilon": 8.0, "delta": 1e-5, "alpha": 0.1, "readings_per_window": 20}
EQUAL, INDEPENDENT, FOR_ONE, FOR_TWO = "equal", "least-error", "shared, for 1", "shared, for 2"
DESIGNS = {EQUAL: 1, INDEPENDENT: 1, FOR_ONE: 1, FOR_TWO: 2, "shared, for 3": 3}  # for how many sources
QUICK_DESIGNS = (EQUAL, INDEPENDENT, FOR_ONE, FOR_TWO)
SCENES = 600
OFF = 0.05  # relative error of wrong gains
SEATS = (4000, 2500, 40)
GOAL = 0.0062  # m^2, mean variance of a lone source where the noise is designed for it
KNOWN = {EQUAL: 0.0477, INDEPENDENT: 0.0152, "limit": 0.0036}  # the same of other noise, computed beforehand
NEAR = 0.03
SEARCH = 0.06  # by how much searches for a design end elsewhere on other processors


@dataclass(frozen=True)
class Located:
    """How well one window locates sources with one design of the noise, by the Cramer-Rao bound along one axis in m^2.

    `variance` is the mean over all places of a lone source, `medians` are those of each of 1, 2 and 3 sources at once,
    `gap` is how far the designed mean can be above the best, `shift` the largest shift of a frame by a hidden move over
    that which is claimed, `off` the same with wrong gains, and `distance` the mean distance in metres of a lone source
    from its most likely place, in simulated windows.
    """

    name: str
    variance: float
    medians: tuple[float, ...]
    gap: float | None
    shift: float
    off: float
    distance: Mean


@dataclass(frozen=True)
class Site:
    """The designs on one floor, and the variance that no noise at this claim can have less of."""

    name: str
    limit: float
    designs: tuple[Located, ...]

    def design(self, name: str) -> Located:
        return pick(self.designs, name=name)


@dataclass(frozen=True)
class SharedNoise(Finding):
    """Shared noise on a studio and, in full runs, on the flat of the example site."""

    size: ClassVar[tuple[float, float]] = (11.0, 4.4)
    sites: tuple[Site, ...]

    @property
    def largest(self) -> Site:
        return self.sites[-1]

    def tables(self) -> tuple[Table, ...]:
        return tuple(
            tabulate(
                f"The {site.name}: variance along one axis in square metres, from a minute of 20 readings",
                "noise | mean, 1 source | median, 1 | median, each of 2 | median, each of 3 | above the best by | "
                f"most likely place, m | shift of a frame | gains off by {100 * OFF:.0f} %",
                [
                    *(
                        f"{one.name} | {one.variance:.5f} | {' | '.join(f'{median:.5f}' for median in one.medians)} | "
                        f"{'-' if one.gap is None else f'{100 * one.gap:.1f} %'} | {one.distance.value:.3f} ± "
                        f"{one.distance.error:.3f} | {one.shift:.3f} | {one.off:.2f}"
                        for one in site.designs
                    ),
                    f"limit at any place | {site.limit:.5f}" + 7 * " | -",
                ],
            )
            for site in self.sites
        )

    def goals(self) -> tuple[Goal, ...]:
        site = self.largest
        shared, independent = site.design(FOR_ONE), site.design(INDEPENDENT)
        found = {EQUAL: site.design(EQUAL).variance, INDEPENDENT: independent.variance, "limit": site.limit}
        far = [name for name, value in found.items() if not math.isclose(value, KNOWN[name], rel_tol=NEAR)]
        designs = [one for each in self.sites for one in each.designs]
        over = [one for one in designs if one.shift > 1]
        return (
            Goal(
                f"mean variance of a lone source at most {GOAL:g} m2",
                f"{shared.variance:.5f}",
                shared.variance <= GOAL,
            ),
            Goal(
                f"{', '.join(f'{name} {value:g}' for name, value in KNOWN.items())}, to {100 * NEAR:.0f} %",
                ", ".join(f"{value:.5f}" for value in found.values()),
                not far,
            ),
            Goal(
                "designed for two, it is better than independent noise for each of one, two and three",
                ", ".join(f"{value:.5f}" for value in site.design(FOR_TWO).medians),
                all(a < b for a, b in zip(site.design(FOR_TWO).medians, independent.medians, strict=True)),
            ),
            Goal(
                "no hidden move shifts a frame further than is claimed",
                f"{len(designs) - len(over)} of {len(designs)}",
                not over,
            ),
        )

    def measures(self) -> tuple[Measure, ...]:
        measures = []
        for site in self.sites:
            for one in site.designs:
                name = f"{site.name}, {one.name}"
                measures.append(Measure(f"variance, {name}", one.variance, slack=SEARCH * one.variance))
                measures.append(Measure(f"distance, {name}", one.distance.value, one.distance.error))
        return tuple(measures)

    def paragraphs(self) -> tuple[str, ...]:
        site = self.largest
        equal, independent, one, two = (site.design(name) for name in (EQUAL, INDEPENDENT, FOR_ONE, FOR_TWO))
        return (
            f"The claim is ({CLAIM['epsilon']:g}, {CLAIM['delta']:g}) for moves of {CLAIM['alpha']:g} m within a "
            "minute of twenty readings, the same for all. [Noise that is correlated between sensors](shared-noise.md) "
            "can be large along the patterns by which moves shift the readings, and small elsewhere. On the "
            f"{site.name}, a lone source then has a mean variance of {one.variance:.5f} m2, where independent designed "
            f"noise has {independent.variance:.5f} and equal noise {equal.variance:.5f}. No noise at this claim "
            f"has less than {site.limit:.5f}.",
            "Noise that is best for one source relies on differences between sensors that another source disturbs: of "
            f"three at once, each has a median of {one.medians[2]:.5f}, and {two.medians[2]:.5f} if the noise is "
            f"designed for two. That gives up little for a lone source ({two.variance:.5f}), and is the default.",
            "Measured: windows of whole-number noise, as a device draws it, and the place that is most likely given "
            "the whole covariance. The shift of a frame is the largest by any hidden move, over that which is claimed, "
            f"and stays below 1. With gains that are off by {100 * OFF:.0f} %, shared noise exceeds it: state a "
            "tolerance of gain unless gains are known better.",
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        site = self.largest
        names = [one.name for one in site.designs]
        left.bar(range(len(names)), [one.variance for one in site.designs], color=SERIES[0])
        left.axhline(site.limit, color=INK, linestyle=":", linewidth=1, label="limit at any place")
        left.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names])
        left.set(title=f"A lone source on the {site.name}", ylabel="mean variance, m2")
        left.set_yscale("log")
        left.legend()
        self._draw_medians(right, site)

    def _draw_medians(self, axes: Any, site: Site) -> None:
        for number, one in enumerate(site.designs):
            color = INK if one.name == EQUAL else SERIES[number - 1]
            axes.plot((1, 2, 3), one.medians, marker=MARKERS[number], color=color, label=one.name)
        axes.set_yscale("log")
        axes.set_xticks((1, 2, 3))
        axes.set(title="Several at once", xlabel="sources", ylabel="median variance of each, m2")
        axes.legend(fontsize=8)


def example_flat() -> FloorPlan:
    """The flat of the example site with a reach of 1 m."""
    flat = load_flat().physics
    if not isinstance(flat, FloorPlan):
        raise TypeError("the example site has a floor plan")
    return replace(flat, regime=Steady(1.0))


def _studio() -> FloorPlan:
    rooms = Rooms.from_walls((5.0, 3.0), cell=0.25, walls=[((3, 0), (3, 3))], doors=[((3, 1), (3, 2))])
    at = [(x, y) for x in (0.6, 1.7, 2.6, 3.7, 4.6) for y in (0.6, 1.5, 2.4)]
    return FloorPlan(rooms, at, Steady(1.0), footprint=0.5)


def _closet() -> FloorPlan:
    """So small that the search for the design ends at the same noise on every processor."""
    rooms = Rooms.from_walls((3.0, 2.0), cell=0.5, walls=[((2, 0), (2, 2))], doors=[((2, 0.5), (2, 1.5))])
    at = [(x, y) for x in (0.6, 1.5, 2.4) for y in (0.5, 1.5)]
    return FloorPlan(rooms, at, Steady(1.0), footprint=0.5)


def cloak_of(model: FloorPlan, name: str) -> Cloak:
    """The noise of a design at the claim."""
    return Cloak(model, **CLAIM, design=name.partition(",")[0], designed_for=DESIGNS[name])  # type: ignore[arg-type]


def located(cloak: Cloak, name: str, seats: int, rng: np.random.Generator) -> Located:
    """How well a design locates sources, by so many simulated windows too."""
    window = cloak.covariance / cloak.readings_per_window
    precision = np.asarray(np.linalg.inv(window), dtype=np.float64)
    report = cloak.design_report
    return Located(
        name,
        report.variance,
        tuple(_median(cloak, precision, sources) for sources in (1, 2, 3)),
        report.gap,
        shift(cloak, np.ones(cloak.physics.sensors)),
        _shift_of_wrong_gains(cloak),
        Mean.of(_distances(cloak, precision, seats, rng)),
    )


def limit_of(cloak: Cloak) -> float:
    """The variance that a source has at least, along one axis, where moves in every direction are hidden."""
    return (cloak.alpha / (cloak.allowance.mu * math.sqrt(cloak.readings_per_window))) ** 2


def shift(cloak: Cloak, gains: FloatArray) -> float:
    """The largest shift of a frame by a hidden move, over that which is claimed, if the sensors have these gains."""
    whiten = np.linalg.inv(np.linalg.cholesky(cloak.covariance))
    slopes = np.concatenate([c / cloak.physics.space.lengths[w] for w, c in cloak.physics.pair_columns()], axis=1)
    return float(np.linalg.norm(whiten @ (slopes * gains[:, None]), axis=0).max()) * cloak.alpha / cloak.frame_mu


def _shift_of_wrong_gains(cloak: Cloak) -> float:
    """The mean of that over 30 sets of gains."""
    rng = np.random.default_rng(4)
    return float(np.mean([shift(cloak, rng.normal(1, OFF, cloak.physics.sensors)) for _ in range(30)]))


def _median(cloak: Cloak, precision: FloatArray, sources: int) -> float:
    """The median over scenes of the variance of each of so many sources, if their number is known and no more."""
    slopes = Moves.of(cloak.physics).slopes
    scenes = np.random.default_rng(3).integers(0, len(slopes), (SCENES, 3))[:, :sources]
    stacked = slopes[scenes].reshape(SCENES, -1, slopes.shape[-1])
    information = stacked @ precision @ np.swapaxes(stacked, 1, 2)
    information += 1e-9 * np.trace(information, axis1=1, axis2=2)[:, None, None] * np.eye(information.shape[1])
    return float(np.median(np.trace(np.linalg.inv(information), axis1=1, axis2=2) / information.shape[1]))


def _distances(cloak: Cloak, precision: FloatArray, seats: int, rng: np.random.Generator) -> FloatArray:
    """Distances of random places from those that are most likely given the mean of a window."""
    matrix, frames = cloak.physics.matrix, cloak.readings_per_window
    at = rng.integers(0, cloak.physics.places, seats)
    silence = np.zeros((seats * frames, cloak.physics.sensors))
    noise = cloak.simulate(silence, rng=rng).reshape(seats, frames, -1).mean(axis=1)
    weighed = precision @ matrix
    scores = (matrix.T[at] + noise) @ weighed - (matrix * weighed).sum(axis=0) / 2
    space, pairs = cloak.physics.space, zip(at.tolist(), scores.argmax(axis=1).tolist(), strict=True)
    return np.array([0.0 if i == j else float(space.distances(i)[j]) for i, j in pairs])


def _site(name: str, model: FloorPlan, designs: Iterable[str], run: Run, number: int) -> Site:
    cloaks = {design: cloak_of(model, design) for design in designs}
    found = (
        located(cloak, design, run.choose(*SEATS), stream(run.seed, number, k))
        for k, (design, cloak) in enumerate(cloaks.items())
    )
    return Site(name, limit_of(cloaks[EQUAL]), tuple(found))


def _work(run: Run) -> SharedNoise:
    studio = {"studio": _studio}
    models = run.choose(studio | {"flat": example_flat}, studio, {"closet": _closet})
    designs = run.choose(tuple(DESIGNS), QUICK_DESIGNS, QUICK_DESIGNS)
    steps = enumerate(run.each(models.items()))
    return SharedNoise(tuple(_site(name, model(), designs, run, number) for number, (name, model) in steps))


EXPERIMENT = Experiment(
    "shared-noise",
    "Sources located with noise that sensors share and with independent noise, at one guarantee",
    SharedNoise,
    _work,
    minutes=1.2,
)
