"""How the error of recovery grows with places, sensors, time and noise, against the papers' rates and the bounds."""

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from cloakwork.accuracy import cramer_rao
from papers.experiment import Experiment, Run, stream
from papers.panels import Axis, Panels, run_cells, run_panels
from papers.result import Agreement, Claim, Goal
from papers.rows import Row, pick
from papers.statistics import fit_slope, judge_lower, judge_upper
from papers.sweeps import bound_slope, of, slope
from papers.trials import Method, Place, Setting, uniform_errors
from papers.upper_bound import papers_bound

FIRST, SHORT = "Gilbert and McMillan, first version", "Gilbert and McMillan, abstract"
RANGES = {  # where exponents are fitted
    "n": ("n", 0.0, math.inf),
    "m": ("m", 50.0, math.inf),
    "T": ("T", 0.0, 0.05),
    "sigma": ("sigma", 0.0, 0.2),
}
MANY_SENSORS = 400
LATE = (2.0, 4.0, 8.0, 16.0)  # the heat has filled the line
TINY = (1e-8, 1e-7, 1e-6)  # noise so small that the papers' bound is below the error of the uniform map
EARLY, FINE = (0.001, 0.002, 0.004), Setting(n=1000, m=500, sigma=1e-3)  # the papers' bound at small T
UNIFORM = 0.25  # the error of the uniform map for a source at 0.5
RARE = 0.05  # failures that are more frequent contradict "with high probability"
SENSORS, SIGMA = 50, 0.2  # the usual values
AXES = (
    Axis("n", (10, 20, 50, 100, 200, 400), (20, 400), Setting(m=SENSORS, T=0.5, sigma=0.1)),
    Axis("m", (10, 20, 50, 100, 200, 400, 1600, 6400), (50, 400, 1600), Setting(T=0.5, sigma=0.1)),
    Axis("T", (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (0.01, 0.05, 0.2), Setting(m=SENSORS, sigma=0.2)),
    Axis("sigma", (0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (0.05, 0.2, 0.5), Setting(m=SENSORS, T=0.05, sigma=0.2)),
)
_, _, TIME, NOISE = AXES


class Noisy(Panels):
    """The four panels of the papers' figure."""

    axes = AXES

    @property
    def unfitted(self) -> float:
        """The share of frames that no map fits within the papers' radius, over panels d, with 50 sensors."""
        points = [point for place in Place for point in self.points(place, "sigma")]
        return float(np.mean([of(point, Method.PAPERS).unfitted for point in points]))

    def ratio(self, method: Method) -> float:
        """The error of a method over the Cramer-Rao bound, at the usual noise of panel d, source anywhere."""
        point = pick(self.points(Place.ANYWHERE, "sigma"), x=SIGMA)
        return float(of(point, method).emd.value / (point.limit or math.nan))

    def claims(self) -> tuple[Claim, ...]:
        return (*self._rates(), *self._large_times(), *self._printed_bound(), *self._lower_bound(), self._feasible())

    def _rates(self) -> tuple[Claim, ...]:
        printed = (
            ("n", "error of noisy recovery in n: O(1)", 0.0, True),
            ("m", "error of noisy recovery in m: O(1)", 0.0, True),
            ("T", "error of noisy recovery in T: sqrt T for small T", 0.5, False),
            ("sigma", "error of noisy recovery in sigma: O(sigma)", 1.0, False),
        )
        tables = f"{FIRST}, Table 2; {SHORT}, Table I"
        rates = [self.rate(text, tables, RANGES[name], rate, growing=growing) for name, text, rate, growing in printed]
        middle, anywhere = (self.points(place, "m", MANY_SENSORS) for place in Place)
        level, last = slope(middle, Method.PAPERS), middle[-1]
        verdict = judge_upper(level, 0.0, growing=True)
        falls = Claim(
            "error of noisy recovery falls like 1 + 1 / sqrt m, so it tends to a positive constant in m",
            f"{FIRST}, section 5 and Figure 3b",
            f"from m = {MANY_SENSORS} on it has exponent {level:+.2f} for the papers' method at 0.5 and falls to "
            f"{of(last, Method.PAPERS).emd.value:.3f} with {last.x:g} sensors; anywhere "
            f"{slope(anywhere, Method.PAPERS):+.2f}, posterior {slope(anywhere, Method.POSTERIOR):+.2f}",
            # the claim is about the error itself, not a bound, so an error that keeps falling contradicts it too
            Agreement.WRONG if verdict is Agreement.LOOSER else verdict,
        )
        return (*rates, falls)

    def _large_times(self) -> tuple[Claim, ...]:
        late = self.late
        visible = late.first < late.guess
        found = (
            f"the Cramer-Rao bound has exponent {late.slope:+.2f} and is {late.first:.2g} at T = {LATE[0]:g} and "
            f"{late.last:.2g} at T = {LATE[-1]:g}; the uniform map has {late.guess:.2f}"
        )
        if not visible:
            found += ", so no error on a line of length 1 can show it"
        return tuple(
            Claim(
                f"error of noisy recovery in T for large T: T^{rate:g} (and never above 1)",
                source,
                found,
                judge_upper(late.slope, rate, growing=True) if visible else Agreement.UNDECIDED,
            )
            for rate, source in ((1.5, f"{FIRST}, Table 2"), (2.0, f"{SHORT}, Table I"))
        )

    def _printed_bound(self) -> tuple[Claim, ...]:
        source, bound = f"{FIRST}, Theorem 9 and Table 2", self.bound
        noise = (
            f"with its constants it has exponent {bound.noise:+.2f} in tiny noise (its first term is a square root), "
            f"and is below the error of the uniform map only up to sigma = {bound.reach:.1g}"
        )
        time = (
            f"with C2 corrected it has exponent {bound.time:+.2f} at sigma = {FINE.sigma:g}: there is no factor sqrt T"
        )
        return (
            Claim("the bound of Theorem 9 is O(sigma)", source, noise, judge_upper(bound.noise, 1.0, growing=False)),
            Claim(
                "the bound of Theorem 9 falls like sqrt T", source, time, judge_upper(bound.time, 0.5, growing=False)
            ),
        )

    def _lower_bound(self) -> tuple[Claim, ...]:
        claims = []
        for name, rate, growing in (("m", -0.5, True), ("sigma", 1.0, False), ("T", 1.5, False)):
            points = self.points(Place.ANYWHERE, *RANGES[name])
            floor = bound_slope(points, "floor")
            claims.append(
                Claim(
                    f"no method beats T^1.5 sigma / sqrt m: exponent {rate:+g} in {name}",
                    "Gilbert and McMillan, Theorem 15; first version, Theorem 11",
                    f"Le Cam's bound has exponent {floor:+.2f}, the Cramer-Rao bound {bound_slope(points):+.2f}",
                    judge_lower(floor, rate, growing=growing),
                )
            )
        return tuple(claims)

    def _feasible(self) -> Claim:
        missed, none = float(stats.chi2.sf(SENSORS, SENSORS)), self.unfitted
        return Claim(
            "the truth is within sigma sqrt m of the readings, with high probability",
            f"{FIRST}, Lemma 7 and Algorithm 1",
            f"with {SENSORS} sensors the truth is outside in {100 * missed:.0f} % of frames, and in {100 * none:.0f} % "
            "no map at all is inside",
            Agreement.of(min(missed, none) <= RARE),
        )

    def goals(self) -> tuple[Goal, ...]:
        ours, gain = self.ratio(Method.POSTERIOR), self.cells.gain.value
        where = f"source anywhere, strength known, sigma = {SIGMA:g}"
        return (
            Goal(f"{where}: posterior at most 1.1 times the Cramer-Rao bound", f"{ours:.2f}", ours <= 1.1),
            Goal(f"{where}: papers/ours at least 2", f"{gain:.2f}", gain >= 2),
        )

    def text(self) -> str:
        return f"One source of strength 1; each reading has Gaussian noise. {self.how_to_read()}"


def late_limit() -> Row:
    """The Cramer-Rao bound of a source at 0.5 once the heat has filled the line, at the noise of panel c.

    `slope` is its exponent in T, `first` and `last` are its ends, `guess` is the error of the uniform map.
    """
    settings = [TIME.setting(T) for T in LATE]
    limits = [cramer_rao(one.line, one.at, one.sigma or math.nan).expected_emd for one in settings]
    guess = float(uniform_errors(settings[0].truth(1, stream(0)))[0])
    return Row(slope=fit_slope(LATE, limits), first=limits[0], last=limits[-1], guess=guess)


def bound_of_papers() -> Row:
    """The papers' upper bound for a source at 0.5, with its constants: exponents in tiny noise and in small T.

    `reach` is the noise up to which it is below the error of the uniform map, on the line of panel d.
    """
    line = Setting().line
    noise = fit_slope(TINY, [papers_bound(line, [0.5], sigma).value for sigma in TINY])
    lines = [replace(FINE, T=T).line for T in EARLY]
    time = fit_slope(EARLY, [papers_bound(one, [0.5], FINE.sigma or math.nan).value for one in lines])
    low, high = math.log(TINY[0]), 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if papers_bound(line, [0.5], math.exp(middle)).value < UNIFORM else (low, middle)
    return Row(noise=noise, time=time, reach=math.exp(low))


def _work(run: Run) -> Noisy:
    middle, anywhere = run_panels(run, AXES)
    cells = run_cells(run, NOISE.setting(SIGMA, Place.ANYWHERE), (run.seed, len(AXES) * len(Place)))
    return Noisy(middle=middle, anywhere=anywhere, cells=cells, late=late_limit(), bound=bound_of_papers())


EXPERIMENT = Experiment(
    "noisy-recovery",
    "How the error of recovery depends on places, sensors, time and noise",
    Noisy,
    _work,
    shows=f"{FIRST}, Figure 3; {FIRST}, Table 2; {SHORT}, Table I",
    minutes=1.2,
)
