"""How the error of recovery grows with places, sensors, time and noise, against the papers' rates and the limits."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy import stats

from cloakwork.accuracy import cramer_rao, papers_bound
from papers.cells import run_cells
from papers.experiment import Experiment, Progress, part, stream
from papers.panels import Panels, rate_claim, run_panels
from papers.rates import judged, opposite
from papers.result import Agreement, Claim, Goal, Measure, Table
from papers.slopes import Slope, fitted
from papers.sweeps import Sweep
from papers.trials import Distances, Mean, Method, Place, Setting

FIRST, SHORT = "Gilbert and McMillan, first version", "Gilbert and McMillan, abstract"
SMALL_T, SMALL_SIGMA = 0.05, 0.2  # up to which slopes are fitted: beyond, errors are as large as the line allows
MANY, VERY_MANY = 50, 400  # sensors from which on slopes are fitted
LATE = (2.0, 4.0, 8.0, 16.0)  # the heat has filled the line
TINY = (1e-8, 1e-7, 1e-6)  # noise so small that the papers' bound says something
EARLY, FINE = (0.001, 0.002, 0.004), Setting(n=1000, m=500, sigma=1e-3)  # where it is followed to small T
OFTEN = 0.05  # a failure that is more frequent than this is not rare
DEFAULT, USUAL = 50, 0.2  # sensors; noise


class Axis(StrEnum):
    """What is varied, as in the four panels of the papers' figure."""

    PLACES = "n"
    SENSORS = "m"
    TIME = "T"
    NOISE = "sigma"

    @property
    def values(self) -> tuple[float, ...]:
        """Where it is measured."""
        return {
            Axis.PLACES: (10, 20, 50, 100, 200, 400),
            Axis.SENSORS: (10, 20, 50, 100, 200, 400, 1600, 6400),
            Axis.TIME: (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
            Axis.NOISE: (0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
        }[self]

    @property
    def quick_values(self) -> tuple[float, ...]:
        """Where a small run measures it."""
        return {
            Axis.PLACES: (20, 400),
            Axis.SENSORS: (50, 400, 1600),
            Axis.TIME: (0.01, 0.05, 0.2),
            Axis.NOISE: (0.05, 0.2, 0.5),
        }[self]

    def setting(self, x: float, place: Place) -> Setting:
        """The caption's values, but for this one."""
        if self is Axis.PLACES:
            return Setting(n=int(x), m=DEFAULT, T=0.5, sigma=0.1, at=place.at)
        if self is Axis.SENSORS:
            return Setting(m=int(x), T=0.5, sigma=0.1, at=place.at)
        if self is Axis.TIME:
            return Setting(m=DEFAULT, T=x, sigma=0.2, at=place.at)
        return Setting(m=DEFAULT, T=0.05, sigma=x, at=place.at)


@dataclass(frozen=True)
class Bound:
    """The papers' upper bound for one source at 0.5, with its constants: exponents in tiny noise and in small T.

    `reach` is the noise up to which it is below the error of a uniform guess, on the line of panel d.
    """

    noise: Slope
    time: Slope
    reach: float


@dataclass(frozen=True)
class Late:
    """The Cramer-Rao limit of a source at 0.5 once the heat has filled the line, at the noise of panel c.

    `slope` is its exponent in T, `first` and `last` are its ends, `guess` is the error of the uniform map.
    """

    slope: Slope
    first: float
    last: float
    guess: float


@dataclass(frozen=True)
class Noisy(Panels):
    """The four panels, with the source in the middle as in the papers, and anywhere."""

    axes = Axis
    late: Late
    bound: Bound

    def steep(self, place: Place, axis: Axis) -> Sweep:
        """The part of a panel where slopes are fitted."""
        high = {Axis.TIME: SMALL_T, Axis.NOISE: SMALL_SIGMA}.get(axis, math.inf)
        return self.of(place, axis).within(MANY if axis is Axis.SENSORS else 0.0, high)

    @property
    def unfitted(self) -> Mean:
        """How often nothing fits within the papers' radius, over panels d, with 50 sensors."""
        points = [point for place in Place for point in self.of(place, Axis.NOISE).points]
        shares = np.array([point.of(Method.PAPERS).unfitted for point in points])
        trials = points[0].of(Method.PAPERS).trials
        share = float(shares.mean())
        # the points of one panel share their random numbers, so that they count once
        return Mean(share, math.sqrt(max(share * (1 - share), 1e-9) / (len(Place) * trials)))

    def ratio(self, method: Method) -> float:
        """Error of a method over the Cramer-Rao limit, at the usual noise of panel d, source anywhere."""
        point = self.of(Place.ANYWHERE, Axis.NOISE).at(USUAL)
        return point.of(method).emd.value / (point.limit or math.nan)

    def tables(self) -> tuple[Table, ...]:
        return (*self.panel_tables(), self._slopes())

    def _slopes(self) -> Table:
        claimed = {Axis.PLACES: "0", Axis.SENSORS: "0", Axis.TIME: "+0.5", Axis.NOISE: "+1"}
        names = {
            Axis.SENSORS: f"m from {MANY}",
            Axis.TIME: f"T up to {SMALL_T:g}",
            Axis.NOISE: f"sigma up to {SMALL_SIGMA:g}",
        }
        rows = []
        for axis in Axis:
            middle, anywhere = self.steep(Place.MIDDLE, axis), self.steep(Place.ANYWHERE, axis)
            slopes = [middle.slope(Method.PAPERS), *(anywhere.slope(method) for method in Method)]
            bounds = [anywhere.limit_slope(), anywhere.floor_slope()]
            rows.append((names.get(axis, str(axis)), claimed[axis], *(str(one) for one in (*slopes, *bounds))))
        columns = ("in", "printed", "papers, at 0.5", *(f"{method}, anywhere" for method in Method), "limit", "floor")
        return Table("Exponents of the error", columns, tuple(rows))

    def claims(self) -> tuple[Claim, ...]:
        return (*self._rates(), *self._late(), *self._proof(), *self._lower(), self._feasible())

    def _rates(self) -> tuple[Claim, ...]:
        tables = f"{FIRST}, Table 2; {SHORT}, Table I"
        said = (
            (Axis.PLACES, "error of noisy recovery in n: O(1)", 0.0, True),
            (Axis.SENSORS, "error of noisy recovery in m: O(1)", 0.0, True),
            (Axis.TIME, "error of noisy recovery in T: sqrt T for small T", 0.5, False),
            (Axis.NOISE, "error of noisy recovery in sigma: O(sigma)", 1.0, False),
        )
        rates = [
            rate_claim(text, tables, [self.steep(place, axis) for place in Place], rate, growing=growing)
            for axis, text, rate, growing in said
        ]
        return (*rates, self._levels_off())

    def _levels_off(self) -> Claim:
        middle, anywhere = (self.of(place, Axis.SENSORS).within(low=VERY_MANY) for place in Place)
        slope, last = middle.slope(Method.PAPERS), middle.points[-1]
        found = (
            f"from m = {VERY_MANY} on it has exponent {slope} for their R at 0.5, down to "
            f"{last.of(Method.PAPERS).emd.value:.3f} with {last.x:g}; anywhere {anywhere.slope(Method.PAPERS)}, "
            f"posterior {anywhere.slope(Method.POSTERIOR)}"
        )
        text = "error of noisy recovery falls like 1 + 1 / sqrt m, not all the way to 0: exponent 0 in the end"
        # it is said of the error itself, not of a bound: what falls on contradicts it too
        verdict = judged(slope, 0.0, growing=True)
        verdict = Agreement.WRONG if verdict is Agreement.LOOSER else verdict
        return Claim(text, f"{FIRST}, section 5 and Figure 3b", found, verdict)

    def _late(self) -> tuple[Claim, ...]:
        late = self.late
        seen = late.first < late.guess
        found = (
            f"the limit has exponent {late.slope}, and is {late.first:.2g} at T = {LATE[0]:g} and {late.last:.2g} at "
            f"T = {LATE[-1]:g}; a guess has {late.guess:.2f}"
        )
        if not seen:
            found += ": no error on a line of length 1 shows it"
        text = "error of noisy recovery in T for large T: T^{} (and never above 1)"
        return tuple(
            Claim(
                text.format(f"{rate:g}"),
                where,
                found,
                judged(late.slope, rate, growing=True) if seen else Agreement.UNDECIDED,
            )
            for rate, where in ((1.5, f"{FIRST}, Table 2"), (2.0, f"{SHORT}, Table I"))
        )

    def _proof(self) -> tuple[Claim, ...]:
        where = f"{FIRST}, Theorem 9 and Table 2"
        bound = self.bound
        noise = (
            f"with its constants it has exponent {bound.noise} in tiny noise (its first term is a square root), and is "
            f"below a uniform guess only up to sigma = {bound.reach:.1g}"
        )
        time = f"with C2 set right it has exponent {bound.time} at sigma = {FINE.sigma:g}: no sqrt T before sigma"
        return (
            Claim("the bound of Theorem 9 is O(sigma)", where, noise, judged(bound.noise, 1.0, growing=False)),
            Claim("the bound of Theorem 9 falls like sqrt T", where, time, judged(bound.time, 0.5, growing=False)),
        )

    def _lower(self) -> tuple[Claim, ...]:
        where = "Gilbert and McMillan, Theorem 15; first version, Theorem 11"
        claims = []
        for axis, rate, growing in ((Axis.SENSORS, -0.5, True), (Axis.NOISE, 1.0, False), (Axis.TIME, 1.5, False)):
            sweep = self.steep(Place.ANYWHERE, axis)
            floor, limit = sweep.floor_slope(), sweep.limit_slope()
            found = f"Le Cam's bound has exponent {floor}, the Cramer-Rao limit {limit}"
            text = f"no method beats T^1.5 sigma / sqrt m: exponent {rate:+g} in {axis}"
            claims.append(Claim(text, where, found, opposite(judged(floor, rate, growing=growing))))
        return tuple(claims)

    def _feasible(self) -> Claim:
        missed, nothing = float(stats.chi2.sf(DEFAULT, DEFAULT)), self.unfitted
        found = (
            f"with {DEFAULT} sensors the truth is outside in {100 * missed:.0f} % of frames, and in "
            f"{100 * nothing.value:.0f} % no map at all is inside"
        )
        verdict = Agreement.WRONG if min(missed, nothing.value) > OFTEN else Agreement.AGREES
        text = "within sigma sqrt m of the readings there is the truth, with high probability"
        return Claim(text, f"{FIRST}, Lemma 7 and Algorithm 1", found, verdict)

    def goals(self) -> tuple[Goal, ...]:
        ours, gain = self.ratio(Method.POSTERIOR), self.cells.gain.value
        where = f"source anywhere, strength known, sigma = {USUAL:g}"
        return (
            Goal(f"{where}: posterior at most 1.1 of the limit", f"{ours:.2f}", ours <= 1.1),
            Goal(f"{where}: papers/ours at least 2", f"{gain:.2f}", gain >= 2),
        )

    def measures(self) -> tuple[Measure, ...]:
        panels = [
            m for place in Place for axis in Axis for m in self.of(place, axis).measures(place, axis.quick_values)
        ]
        share = Measure("nothing fits, 50 sensors", self.unfitted.value, self.unfitted.error, slack=0.01, share=True)
        late = Measure("late exponent of the limit in T", self.late.slope.value)
        return (*panels, *self.cells.measures(), share, late)

    def words(self) -> tuple[str, ...]:
        return (
            "One source of strength 1, readings with plain noise; what is varied is below each panel. Upper row: the "
            "papers' figure, with the source always at 0.5. Lower row: the source at a random place, which no method "
            f"can profit from. {self.frames()}",
            f"{self._leaning()} With the papers' radius nothing at all fits in {100 * self.unfitted.value:.0f} % of "
            "frames, and the best fit stands in.",
            f"{self._in_sensors()} At {self.cells.setting.words('n', 'm')}, source anywhere, the papers' R is "
            f"{self.ratio(Method.PAPERS):.1f} times the limit, the posterior {self.ratio(Method.POSTERIOR):.2f} times; "
            f"on the same frames papers/ours is {self.cells.gain.value:.2f} ± {self.cells.gain.error:.2f}. "
            f"{self.cells.words()} The papers' upper bound, with its constants, is below a guess only up to "
            f"sigma = {self.bound.reach:.1g}.",
        )

    def _leaning(self) -> str:
        """Whether R is better than methods without a bias can be, where the papers have their source, in words."""
        middle, anywhere = (self.of(place, Axis.SENSORS).at(DEFAULT) for place in Place)
        here, there = (point.of(Method.PURSUIT).emd for point in (middle, anywhere))
        limit, beyond = middle.limit or math.nan, anywhere.limit or math.nan
        numbers = (
            f"with a calibrated radius and {DEFAULT} sensors at T = {Axis.SENSORS.setting(DEFAULT, Place.MIDDLE).T:g} "
            f"R has {here.value:.3f} at 0.5, where the Cramer-Rao limit is {limit:.3f}; anywhere it has "
            f"{there.value:.3f} and the posterior {anywhere.of(Method.POSTERIOR).emd.value:.3f}, with a limit of "
            f"{beyond:.3f}."
        )
        if here.value + 2 * here.error < limit and there.value > beyond:
            return (
                f"The upper row flatters, since R leans towards the middle, where the source is: {numbers} The limit "
                "holds for methods without a bias only, and is drawn as far as a guess is not better."
            )
        return f"The Cramer-Rao limit holds for methods without a bias: {numbers}"

    def _in_sensors(self) -> str:
        """What more sensors bring, in words."""
        sweep = self.steep(Place.ANYWHERE, Axis.SENSORS)
        papers = sweep.slope(Method.PAPERS)
        level = judged(papers, 0.0, growing=True) is Agreement.AGREES
        return (
            f"In more sensors the posterior gains with exponent {sweep.slope(Method.POSTERIOR)}, the limit with "
            f"{sweep.limit_slope().value:+.2f}; the papers' R with {papers}{', a level' if level else ''}."
        )


def late_limit() -> Late:
    """The limit of a source at 0.5, once the heat has filled the line."""
    settings = [Axis.TIME.setting(T, Place.MIDDLE) for T in LATE]
    limits = [cramer_rao(one.line, one.at, one.sigma or math.nan).expected_emd for one in settings]
    truth = settings[0].truth(1, stream(0))
    guess = float(Distances.of(truth, np.zeros_like(truth)).emd[0])
    return Late(fitted(LATE, limits), limits[0], limits[-1], guess)


def bound_of_papers(guess: float = 0.25) -> Bound:
    """Their upper bound, for a source at 0.5."""
    line = Setting().line
    noise = fitted(TINY, [papers_bound(line, [0.5], sigma).value for sigma in TINY])
    lines = [replace(FINE, T=T).line for T in EARLY]
    time = fitted(EARLY, [papers_bound(one, [0.5], FINE.sigma or math.nan).value for one in lines])
    low, high = math.log(TINY[0]), 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if papers_bound(line, [0.5], math.exp(middle)).value < guess else (low, middle)
    return Bound(noise, time, math.exp(low))


def _work(*, quick: bool, seed: int, progress: Progress) -> Noisy:
    middle, anywhere = run_panels(Axis, quick=quick, seed=seed, progress=part(progress, 0, 80, 100))
    usual = Axis.NOISE.setting(USUAL, Place.ANYWHERE)
    cells = run_cells(usual, (seed, len(Axis) * len(Place)), quick=quick)
    progress(100, 100)
    return Noisy(middle, anywhere, cells, late_limit(), bound_of_papers())


EXPERIMENT = Experiment(
    "noisy-recovery",
    "How the error of recovery depends on places, sensors, time and noise",
    Noisy,
    _work,
    shows=(f"{FIRST}, Figure 3", f"{FIRST}, Table 2", f"{SHORT}, Table I"),
    minutes=1.2,
)
