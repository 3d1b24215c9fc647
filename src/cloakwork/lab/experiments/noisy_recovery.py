"""How the error of recovery grows with places, sensors, time and noise, against the papers' rates and the limits."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy import stats

from cloakwork.lab.experiment import Experiment, Progress
from cloakwork.lab.panels import Panels, run_panels
from cloakwork.lab.rates import judged, opposite
from cloakwork.lab.result import Agreement, Claim, Goal, Measure, Table
from cloakwork.lab.slopes import Slope, fitted
from cloakwork.lab.sweeps import Sweep
from cloakwork.lab.trials import Mean, Method, Place, Setting
from cloakwork.measure import cramer_rao, papers_bound

FIRST, SHORT = "Gilbert and McMillan, first version", "Gilbert and McMillan, abstract"
SMALL_T, SMALL_SIGMA = 0.05, 0.2  # up to which slopes are fitted: beyond, errors are as large as the line allows
MANY, VERY_MANY = 50, 400  # sensors from which on slopes are fitted
LATE = (2.0, 4.0, 8.0, 16.0)  # the heat has filled the line
TINY = (1e-8, 1e-7, 1e-6)  # noise so small that the papers' bound says something
EARLY, FINE = (0.001, 0.002, 0.004), Setting(n=1000, m=500, sigma=1e-3)  # where it is followed to small T
OFTEN = 0.05  # a failure that is more frequent than this is not rare
DEFAULT = 50  # sensors


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
            Axis.PLACES: (20, 100, 400),
            Axis.SENSORS: (10, 50, 400, 1600),
            Axis.TIME: (0.01, 0.02, 0.05, 0.2),
            Axis.NOISE: (0.02, 0.05, 0.2, 0.5),
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

    @property
    def fixed(self) -> str:
        """The values of the others."""
        return {
            Axis.PLACES: "m = 50, T = 0.5, sigma = 0.1",
            Axis.SENSORS: "n = 100, T = 0.5, sigma = 0.1",
            Axis.TIME: "n = 100, m = 50, sigma = 0.2",
            Axis.NOISE: "n = 100, m = 50, T = 0.05",
        }[self]


@dataclass(frozen=True)
class Bound:
    """The papers' upper bound for one source at 0.5, with its constants: exponents in tiny noise and in small T.

    `reach` is the noise up to which it is below the error of a uniform guess, on the line of panel d.
    """

    noise: Slope
    time: Slope
    reach: float


@dataclass(frozen=True)
class Noisy(Panels):
    """The four panels, with the source in the middle as in the papers, and anywhere.

    `late` is the exponent in T of the Cramer-Rao limit once the heat has filled the line.
    """

    axes = Axis
    late: Slope
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
        """Error of a method over the Cramer-Rao limit, n = 100, m = 50, T = 0.05, sigma = 0.2, source anywhere."""
        point = self.of(Place.ANYWHERE, Axis.NOISE).at(0.2)
        return point.of(method).emd.value / (point.limit or math.nan)

    def tables(self) -> tuple[Table, ...]:
        panels = [
            self.of(place, axis).table(f"Mean earth mover distance, {place}, {axis.fixed}")
            for place in Place
            for axis in Axis
        ]
        return (*panels, self._slopes())

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
        rates = [self._rate(axis, text, tables, rate, growing) for axis, text, rate, growing in said]
        return (*rates, self._levels_off())

    def _levels_off(self) -> Claim:
        middle, anywhere = (self.of(place, Axis.SENSORS).within(low=VERY_MANY) for place in Place)
        slope, last = middle.slope(Method.PAPERS), middle.points[-1]
        found = (
            f"from m = {VERY_MANY} on it has exponent {slope} for their R at 0.5, down to "
            f"{last.of(Method.PAPERS).emd.value:.3f} with {last.x:g}; anywhere {anywhere.slope(Method.PAPERS)}, "
            f"posterior {anywhere.slope(Method.POSTERIOR)}"
        )
        falls = slope.value < 0 and not slope.near(0.0, allowed=0.05)
        text = "error of noisy recovery falls like 1 + 1 / sqrt m: not all the way to 0"
        verdict = Agreement.WRONG if falls else Agreement.AGREES
        return Claim(text, f"{FIRST}, section 5 and Figure 3b", found, verdict)

    def _rate(self, axis: Axis, text: str, where: str, claimed: float, growing: bool) -> Claim:
        slope = self.steep(Place.MIDDLE, axis).slope(Method.PAPERS)
        anywhere = self.steep(Place.ANYWHERE, axis)
        allowed = 0.05 if axis in {Axis.PLACES, Axis.SENSORS} else 0.1  # nothing bends what is level
        found = (
            f"exponent {slope} of their R at 0.5; anywhere {anywhere.slope(Method.PAPERS)}, "
            f"posterior {anywhere.slope(Method.POSTERIOR)}, limit {anywhere.limit_slope()}"
        )
        return Claim(text, where, found, judged(slope, claimed, growing=growing, allowed=allowed))

    def _late(self) -> tuple[Claim, ...]:
        text = "error of noisy recovery in T for large T: T^{} (and never above 1)"
        found = f"the limit has exponent {self.late}, and any error ends at that of a guess"
        return tuple(
            Claim(text.format(f"{rate:g}"), where, found, judged(self.late, rate, growing=True))
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
        ours, papers = self.ratio(Method.POSTERIOR), self.ratio(Method.PAPERS)
        return (
            Goal("source anywhere, sigma = 0.2: posterior at most 1.1 of the limit", f"{ours:.2f}", ours <= 1.1),
            Goal("source anywhere, sigma = 0.2: papers/ours at least 2", f"{papers / ours:.2f}", papers / ours >= 2),
        )

    def measures(self) -> tuple[Measure, ...]:
        chosen = {
            Axis.PLACES: (20, 400),
            Axis.SENSORS: (10, 50, 1600),
            Axis.TIME: (0.01, 0.05, 0.2),
            Axis.NOISE: (0.05, 0.2, 0.5),
        }
        panels = [m for place in Place for axis in Axis for m in self.of(place, axis).measures(place, chosen[axis])]
        share = Measure("nothing fits, 50 sensors", self.unfitted.value, self.unfitted.error, slack=0.01)
        return (*panels, share, Measure("late exponent of the limit in T", self.late.value))

    def words(self) -> tuple[str, ...]:
        middle, anywhere = self.of(Place.MIDDLE, Axis.SENSORS).at(DEFAULT), self.of(Place.ANYWHERE, Axis.SENSORS)
        slope = self.steep(Place.ANYWHERE, Axis.SENSORS)
        frames, ours = (middle.of(method).trials for method in (Method.PAPERS, Method.POSTERIOR))
        pursuit, limit = middle.of(Method.PURSUIT).emd.value, middle.limit or math.nan
        return (
            f"One source of strength 1, readings with plain noise; what is varied is below each panel. Upper row: the "
            f"papers' figure, with the source always at 0.5. Lower row: the source at a random place, which no method "
            f"can profit from. The shaded band is what 10 trials would give, as many as the papers took; here there "
            f"are {frames:,} frames for R and {ours:,} for the posterior at each point.",
            f"The upper row flatters: R leans towards the middle, where the source is, so that with our radius and "
            f"{DEFAULT} sensors at T = 0.5 its error is {pursuit:.3f}, below the Cramer-Rao limit of {limit:.3f} that "
            f"holds for methods without a bias. Anywhere, R has {anywhere.at(DEFAULT).of(Method.PURSUIT).emd.value:.3f}"
            f" and the posterior {anywhere.at(DEFAULT).of(Method.POSTERIOR).emd.value:.3f}, with a limit of "
            f"{anywhere.at(DEFAULT).limit:.3f}. With the papers' radius nothing at all fits in "
            f"{100 * self.unfitted.value:.0f} % of frames, and the best fit stands in.",
            f"In more sensors the posterior gains with exponent {slope.slope(Method.POSTERIOR)}, as the limit does "
            f"({slope.limit_slope().value:+.2f}); the papers' R with {slope.slope(Method.PAPERS)}, which looks like a "
            f"level with up to 100 sensors but is none. At sigma = 0.2 and T = 0.05 the papers' R is "
            f"{self.ratio(Method.PAPERS):.1f} times the limit, the posterior {self.ratio(Method.POSTERIOR):.2f} times. "
            f"The papers' upper bound says nothing above sigma = {self.bound.reach:.1g}.",
        )


def late_slope() -> Slope:
    """Exponent in T of the Cramer-Rao limit of a source at 0.5, once the heat has filled the line."""
    limits = [cramer_rao(Setting(T=T).line, [0.5], 0.1).expected_emd for T in LATE]
    return fitted(LATE, limits)


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
    middle, anywhere = run_panels(Axis, quick=quick, seed=seed, progress=progress)
    return Noisy(middle, anywhere, late_slope(), bound_of_papers())


EXPERIMENT = Experiment(
    "noisy-recovery",
    "How the error of recovery depends on places, sensors, time and noise",
    Noisy,
    _work,
    shows=(f"{FIRST}, Figure 3", f"{FIRST}, Table 2", f"{SHORT}, Table I"),
    minutes=1.0,
)
