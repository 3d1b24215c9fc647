"""How the error of private recovery depends on places, sensors, time and epsilon: the papers, ours, the limit."""

import math
from dataclasses import dataclass
from enum import StrEnum

from cloakwork.lab.experiment import Experiment, Progress
from cloakwork.lab.panels import Panels, run_panels
from cloakwork.lab.rates import judged
from cloakwork.lab.result import Agreement, Claim, Goal, Measure, Table
from cloakwork.lab.sweeps import Sweep
from cloakwork.lab.trials import Method, Place, Setting
from cloakwork.measure import papers_bound
from cloakwork.privacy import Calibration
from cloakwork.privacy.gaussian import largest_mu

LATEST, FIRST = "Gilbert and McMillan", "Gilbert and McMillan, first version"
SHORT = "Gilbert and McMillan, abstract"
MANY_PLACES = 100  # from which the papers' error is not that of a guess
EARLY, LATE = 0.02, 0.1  # up to which T is small, and from which it is large
RISES = 1.5  # an error that many times the least has risen
DEFAULT = 1.0  # epsilon


class Axis(StrEnum):
    """What is varied, as in the four panels of the papers' figure."""

    PLACES = "n"
    SENSORS = "m"
    TIME = "T"
    EPSILON = "epsilon"

    @property
    def values(self) -> tuple[float, ...]:
        """Where it is measured."""
        return {
            Axis.PLACES: (10, 20, 50, 100, 200, 400),
            Axis.SENSORS: (5, 10, 20, 50, 100, 200),
            Axis.TIME: (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
            Axis.EPSILON: (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0),
        }[self]

    @property
    def quick_values(self) -> tuple[float, ...]:
        """Where a small run measures it."""
        return {
            Axis.PLACES: (20, 100, 200, 400),
            Axis.SENSORS: (10, 50, 200),
            Axis.TIME: (0.005, 0.01, 0.02, 0.05, 0.2, 1.0),
            Axis.EPSILON: (0.2, 1.0, 5.0),
        }[self]

    def setting(self, x: float, place: Place) -> Setting:
        """The caption's values, but for this one: n = 100, m = 50, t = 0.1 (T = 0.05), epsilon = 1, delta = 0.1."""
        if self is Axis.PLACES:
            return Setting(n=int(x), at=place.at)
        if self is Axis.SENSORS:
            return Setting(m=int(x), at=place.at)
        if self is Axis.TIME:
            return Setting(T=x, at=place.at)
        return Setting(epsilon=x, at=place.at)

    @property
    def fixed(self) -> str:
        """The values of the others."""
        return {
            Axis.PLACES: "m = 50, T = 0.05, epsilon = 1",
            Axis.SENSORS: "n = 100, T = 0.05, epsilon = 1",
            Axis.TIME: "n = 100, m = 50, epsilon = 1",
            Axis.EPSILON: "n = 100, m = 50, T = 0.05",
        }[self]


class Stretch(StrEnum):
    """Where a slope is fitted."""

    PLACES = f"n from {MANY_PLACES}"
    SENSORS = "m"
    EARLY = f"T up to {EARLY:g}"
    LATE = f"T from {LATE:g}"
    EPSILON = f"epsilon from {DEFAULT:g}"

    @property
    def axis(self) -> Axis:
        """Its panel."""
        return {
            Stretch.PLACES: Axis.PLACES,
            Stretch.SENSORS: Axis.SENSORS,
            Stretch.EARLY: Axis.TIME,
            Stretch.LATE: Axis.TIME,
            Stretch.EPSILON: Axis.EPSILON,
        }[self]

    @property
    def ends(self) -> tuple[float, float]:
        """From where to where, both included."""
        lows = {Stretch.PLACES: float(MANY_PLACES), Stretch.LATE: LATE, Stretch.EPSILON: DEFAULT}
        return lows.get(self, 0.0), EARLY if self is Stretch.EARLY else math.inf

    @property
    def printed(self) -> str:
        """The exponents of the papers."""
        return {
            Stretch.PLACES: "-0.5",
            Stretch.SENSORS: "0 or +0.5",
            Stretch.EARLY: "-1",
            Stretch.LATE: "+2.5 or +2",
            Stretch.EPSILON: "-",
        }[self]


@dataclass(frozen=True)
class Private(Panels):
    """The four panels, with the source in the middle as in the papers, and anywhere; delta = 0.1, alpha = 1/n.

    `bound` is the papers' upper bound with its constants, for their noise at the values of the caption.
    """

    axes = Axis
    bound: float

    def ratio(self, place: Place, method: Method, other: Method | None = None) -> float:
        """Error of one method over that of another, or over the Cramer-Rao limit, at the values of the caption."""
        point = self.of(place, Axis.EPSILON).at(DEFAULT)
        below = (point.limit or math.nan) if other is None else point.of(other).emd.value
        return point.of(method).emd.value / below

    def rise(self, method: Method, *, early: bool) -> float:
        """Error at the smallest or the largest T over the least, source at 0.5."""
        means = [point.of(method).emd.value for point in self.of(Place.MIDDLE, Axis.TIME).points]
        return means[0 if early else -1] / min(means)

    def tables(self) -> tuple[Table, ...]:
        panels = [
            self.of(place, axis).table(f"Mean earth mover distance, {place}, {axis.fixed}, delta = 0.1")
            for place in Place
            for axis in Axis
        ]
        return (*panels, self._slopes())

    def over(self, place: Place, stretch: Stretch) -> Sweep:
        """The part of a panel that a slope is fitted to."""
        low, high = stretch.ends
        return self.of(place, stretch.axis).within(low, high)

    def _slopes(self) -> Table:
        rows = []
        for stretch in Stretch:
            middle, anywhere = (self.over(place, stretch) for place in Place)
            slopes = [middle.slope(Method.PAPERS), *(anywhere.slope(method) for method in Method)]
            rows.append((str(stretch), stretch.printed, *map(str, slopes), str(anywhere.limit_slope())))
        columns = ("in", "printed", "papers, at 0.5", *(f"{method}, anywhere" for method in Method), "limit")
        return Table("Exponents of the error", columns, tuple(rows))

    def claims(self) -> tuple[Claim, ...]:
        tables, short = f"{LATEST}, Table 1; {FIRST}, Table 1", f"{SHORT}, Table II"
        return (
            self._rate("n: O(1 + 1 / sqrt n)", f"{tables}; {short}", Stretch.PLACES, -0.5),
            self._rate("m: O(1)", tables, Stretch.SENSORS, 0.0),
            self._rate("m: O(sqrt m)", short, Stretch.SENSORS, 0.5),
            self._rate("T: 1 / T for small T", f"{tables}; {short}", Stretch.EARLY, -1.0),
            self._rate("T: T^2.5 for large T (and never above 1)", tables, Stretch.LATE, 2.5),
            self._rate("T: T^2 for large T (and never above 1)", short, Stretch.LATE, 2.0),
            self._rises(),
        )

    def _rate(self, text: str, where: str, stretch: Stretch, claimed: float) -> Claim:
        middle, anywhere = (self.over(place, stretch) for place in Place)
        slope = middle.slope(Method.PAPERS)
        found = (
            f"exponent {slope} of the papers' method at 0.5; anywhere {anywhere.slope(Method.PAPERS)}, "
            f"posterior {anywhere.slope(Method.POSTERIOR)}, limit {anywhere.limit_slope()}"
        )
        verdict = judged(slope, claimed, growing=stretch is not Stretch.EARLY)
        return Claim(f"error of private recovery in {text}", where, found, verdict)

    def _rises(self) -> Claim:
        papers = [self.rise(Method.PAPERS, early=early) for early in (True, False)]
        ours = [self.rise(Method.POSTERIOR, early=early) for early in (True, False)]
        found = (
            f"{papers[0]:.1f} and {papers[1]:.1f} times the least for the papers, {ours[0]:.1f} and {ours[1]:.1f} "
            "times for the posterior with exact noise"
        )
        verdict = Agreement.AGREES if min(papers) > RISES else Agreement.WRONG
        text = "error of private recovery rises both for small and for large T"
        return Claim(text, f"{FIRST}, section 5 and Figure 6c", found, verdict)

    def goals(self) -> tuple[Goal, ...]:
        ratio = self.ratio(Place.ANYWHERE, Method.PAPERS, Method.POSTERIOR)
        far = self.ratio(Place.ANYWHERE, Method.POSTERIOR)
        return (
            Goal("source anywhere, (1, 0.1): papers/ours at least 6", f"{ratio:.2f}", ratio >= 6),
            Goal("source anywhere, (1, 0.1): ours/limit at most 1.15", f"{far:.2f}", far <= 1.15),
        )

    def measures(self) -> tuple[Measure, ...]:
        chosen = {
            Axis.PLACES: (20, 400),
            Axis.SENSORS: (10, 200),
            Axis.TIME: (0.005, 0.05, 0.2, 1.0),
            Axis.EPSILON: (0.2, 1.0, 5.0),
        }
        return tuple(m for place in Place for axis in Axis for m in self.of(place, axis).measures(place, chosen[axis]))

    def words(self) -> tuple[str, ...]:
        middle, anywhere = (self.of(place, Axis.EPSILON).at(DEFAULT) for place in Place)
        papers, pursuit, ours = (anywhere.of(method) for method in Method)
        time = self.of(Place.ANYWHERE, Axis.TIME).points
        means = [point.of(Method.POSTERIOR).emd.value for point in time]
        reach = 1 / Setting().n / largest_mu(Setting().epsilon, Setting().delta)
        return (
            "One source of strength 1, noise that hides a move by one place. Each method has the noise that it asks "
            "for at the same (epsilon, delta): the papers' formula, or the exact calibration. Upper row: the papers' "
            "figure, with the source at 0.5; lower row: anywhere. The shaded band is what 10 trials would give; here "
            f"there are {papers.trials:,} frames for R and {ours.trials:,} for the posterior at each point. T is half "
            "of the caption's t.",
            f"At the caption's values the papers' sigma is {papers.sigma:.3f} where {ours.sigma:.3f} is enough. "
            f"Anywhere on the line they reach {papers.emd.value:.4f} with it; R with the exact noise and a radius that "
            f"fits has {pursuit.emd.value:.4f}, the posterior {ours.emd.value:.4f}, "
            f"{papers.emd.value / ours.emd.value:.1f} times less, and the limit is {anywhere.limit:.4f} "
            f"(at 0.5: {middle.of(Method.PAPERS).emd.value:.4f} against {middle.of(Method.POSTERIOR).emd.value:.4f}). "
            f"The papers' upper bound, with its constants, is {self.bound:.2f} there"
            f"{': it says nothing' if self.bound >= 1 else ''}.",
            f"The noise follows the sensitivity, so that time and sensors hardly matter: from T = {time[0].x:g} to "
            f"{time[-1].x:g} the posterior stays between {min(means):.4f} and {max(means):.4f}; alpha / mu is "
            f"{reach:.4f}. That the papers' error rises for small T is the price of too much noise: a source is then "
            f"often not seen at all ({100 * time[0].of(Method.PAPERS).empty:.0f} % of their maps are empty at "
            f"T = {time[0].x:g}).",
        )


def _work(*, quick: bool, seed: int, progress: Progress) -> Private:
    middle, anywhere = run_panels(Axis, quick=quick, seed=seed, progress=progress)
    usual = Setting()
    bound = papers_bound(usual.line, [0.5], usual.channel(Calibration.PAPER).sigma).value
    return Private(middle, anywhere, bound)


EXPERIMENT = Experiment(
    "private-recovery",
    "How the error of private recovery depends on places, sensors, time and epsilon",
    Private,
    _work,
    shows=(
        f"{FIRST}, Figure 6",
        f"{SHORT}, Figure 2",
        f"{LATEST}, Table 1",
        f"{FIRST}, Table 1",
        f"{SHORT}, Table II",
        "McMillan, Table 8.1",
    ),
    minutes=1.0,
)
