"""How the error of private recovery depends on places, sensors, time and epsilon: the papers, ours, the limit."""

import math
from dataclasses import dataclass
from enum import StrEnum

from cloakwork.accuracy import papers_bound
from cloakwork.privacy import Calibration, largest_mu
from papers.cells import Way, run_cells
from papers.experiment import Experiment, Progress, part
from papers.panels import Panels, rate_claim, run_panels
from papers.result import Agreement, Claim, Goal, Measure, Table
from papers.sweeps import Sweep
from papers.trials import Method, Place, Setting

LATEST, FIRST = "Gilbert and McMillan", "Gilbert and McMillan, first version"
SHORT = "Gilbert and McMillan, abstract"
MANY_PLACES = 100  # below, and for T below the first of EARLY, the papers' error is near that of a guess
EARLY, LATE = (0.01, 0.02), 0.1  # where T is small, and from which it is large
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
            Axis.TIME: (0.002, 0.005, 0.01, 0.014, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
            Axis.EPSILON: (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0),
        }[self]

    @property
    def quick_values(self) -> tuple[float, ...]:
        """Where a small run measures it."""
        return {
            Axis.PLACES: (100, 400),
            Axis.SENSORS: (10, 200),
            Axis.TIME: (0.005, 0.01, 0.02, 0.2, 1.0),
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


class Stretch(StrEnum):
    """Where a slope is fitted."""

    PLACES = f"n from {MANY_PLACES}"
    SENSORS = "m"
    EARLY = f"T from {EARLY[0]:g} to {EARLY[1]:g}"
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
        if self is Stretch.EARLY:
            return EARLY
        lows = {Stretch.PLACES: float(MANY_PLACES), Stretch.LATE: LATE, Stretch.EPSILON: DEFAULT}
        return lows.get(self, 0.0), math.inf

    @property
    def printed(self) -> str:
        """The exponents of the papers."""
        return {
            Stretch.PLACES: "0",
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

    @property
    def far(self) -> float:
        """Error of the posterior over the Cramer-Rao limit, at the values of the caption, source anywhere."""
        return self.cells.of(Way.TOLD).emd.value / (self.of(Place.ANYWHERE, Axis.EPSILON).at(DEFAULT).limit or math.nan)

    def rise(self, method: Method, *, early: bool) -> float:
        """Error at the smallest or the largest T over the least, source at 0.5."""
        means = [point.of(method).emd.value for point in self.of(Place.MIDDLE, Axis.TIME).points]
        return means[0 if early else -1] / min(means)

    def tables(self) -> tuple[Table, ...]:
        return (*self.panel_tables(), self._slopes())

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
            self._rate("n: O(1 + 1 / sqrt n), exponent 0 in the end", f"{tables}; {short}", Stretch.PLACES, 0.0),
            self._rate("m: O(1)", tables, Stretch.SENSORS, 0.0),
            self._rate("m: O(sqrt m)", short, Stretch.SENSORS, 0.5),
            self._rate("T: 1 / T for small T", f"{tables}; {short}", Stretch.EARLY, -1.0),
            self._rate("T: T^2.5 for large T (and never above 1)", tables, Stretch.LATE, 2.5),
            self._rate("T: T^2 for large T (and never above 1)", short, Stretch.LATE, 2.0),
            self._rises(),
        )

    def _rate(self, text: str, where: str, stretch: Stretch, claimed: float) -> Claim:
        sweeps, growing = [self.over(place, stretch) for place in Place], stretch is not Stretch.EARLY
        return rate_claim(f"error of private recovery in {text}", where, sweeps, claimed, growing=growing)

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
        gain = self.cells.gain.value
        where = f"source anywhere, strength known, ({DEFAULT:g}, {self.cells.setting.delta:g})"
        return (
            Goal(f"{where}: papers/ours at least 6", f"{gain:.2f}", gain >= 6),
            Goal(f"{where}: ours/limit at most 1.15", f"{self.far:.2f}", self.far <= 1.15),
        )

    def measures(self) -> tuple[Measure, ...]:
        panels = [
            m for place in Place for axis in Axis for m in self.of(place, axis).measures(place, axis.quick_values)
        ]
        return (*panels, *self.cells.measures())

    def words(self) -> tuple[str, ...]:
        return (
            "One source of strength 1, noise that hides a move by one place. Each method has the noise that it asks "
            "for at the same (epsilon, delta): the papers' formula, or the exact calibration; the limit is drawn for "
            "both. Upper row: the papers' figure, with the source at 0.5; lower row: anywhere. "
            f"{self.frames()} T is half of the caption's t.",
            self._parts(),
            " ".join(said for said in (self._level(), self._early(), self._in_places()) if said),
        )

    def _in_places(self) -> str:
        """What more places mean, in words."""
        usual = self.cells.setting
        points = self.of(Place.ANYWHERE, Axis.PLACES).points
        moves = [point.x * point.of(Method.POSTERIOR).emd.value for point in points]
        return (
            "With more places less is hidden: a move by one of them is a move by 1/n, which the authors call a little "
            f"misleading. In such moves the error of the posterior is {min(moves):.2f} to {max(moves):.2f}, and "
            f"alpha / mu is {1 / largest_mu(usual.epsilon, usual.delta):.2f}."
        )

    def _parts(self) -> str:
        """What of the factor between the papers and us is noise and what is recovery, in words."""
        point = self.of(Place.ANYWHERE, Axis.EPSILON).at(DEFAULT)
        papers, told = self.cells.of(Way.PAPERS, Calibration.PAPER), self.cells.of(Way.TOLD)
        between = self.cells.of(Way.TOLD, Calibration.PAPER)
        return (
            f"At the caption's values the papers' sigma is {papers.sigma:.3f} where {told.sigma:.3f} is enough, "
            f"{papers.sigma / told.sigma:.1f} times less. Anywhere on the line they reach {papers.emd} with it, and "
            f"the posterior with exact noise {told.emd}, {self.cells.gain.value:.1f} times less. Of this factor "
            f"{self.cells.noise.value:.1f} is noise (with the papers' noise the posterior has {between.emd}) and "
            f"{self.cells.recovery:.1f} is recovery. The limits are {point.papers_limit:.4f} and {point.limit:.4f}. "
            f"{self.cells.words()} The papers' upper bound, with its constants, is {self.bound:.2f} here"
            f"{': it says nothing' if self.bound >= 1 else ''}."
        )

    def _level(self) -> str:
        """What time and sensors do to the posterior, in words."""
        sweeps = [self.of(Place.ANYWHERE, axis) for axis in (Axis.TIME, Axis.SENSORS)]
        stretches = []
        for sweep in sweeps:
            means = [point.of(Method.POSTERIOR).emd.value for point in sweep.points]
            ends = f"from {sweep.name} = {sweep.points[0].x:g} to {sweep.points[-1].x:g}"
            stretches.append(f"{ends} between {min(means):.4f} and {max(means):.4f}")
        return f"The noise follows the sensitivity: source anywhere, the posterior has {'; '.join(stretches)}."

    def _early(self) -> str:
        """What becomes of the papers' error for small T, in words."""
        first, start = self.of(Place.MIDDLE, Axis.TIME).points[0], EARLY[0]
        papers = first.of(Method.PAPERS)
        if not (first.x < start and papers.emd.value > first.guess / 2):
            return ""
        return (
            f"For small T the papers' error nears that of a guess: at 0.5 and T = {first.x:g} it is "
            f"{papers.emd.value / first.guess:.2f} of it, with {100 * papers.empty:.0f} % of maps empty, so that the "
            f"exponent is fitted from T = {start:g} on."
        )


def _work(*, quick: bool, seed: int, progress: Progress) -> Private:
    middle, anywhere = run_panels(Axis, quick=quick, seed=seed, progress=part(progress, 0, 80, 100))
    usual = Setting()
    cells = run_cells(usual, (seed, len(Axis) * len(Place)), quick=quick)
    progress(100, 100)
    bound = papers_bound(usual.line, [0.5], usual.channel(Calibration.PAPER).sigma).value
    return Private(middle, anywhere, cells, bound)


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
    minutes=1.5,
)
