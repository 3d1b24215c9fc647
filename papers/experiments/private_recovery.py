"""How the error of private recovery depends on places, sensors, time and epsilon: the papers, ours, the bound."""

import math

from papers.calibration import Calibration
from papers.experiment import Experiment, Run
from papers.panels import Axis, Panels, Way, run_cells, run_panels
from papers.result import Agreement, Claim, Goal
from papers.rows import pick
from papers.sweeps import of
from papers.trials import Method, Place, Setting
from papers.upper_bound import papers_bound

LATEST, FIRST = "Gilbert and McMillan", "Gilbert and McMillan, first version"
SHORT = "Gilbert and McMillan, abstract"
RISES = 1.5  # an error that is this many times the least has risen
EPSILON = 1.0  # of the caption, which also has n = 100, m = 50, t = 0.1 (T = 0.05), delta = 0.1
AXES = (
    Axis("n", (10, 20, 50, 100, 200, 400), (100, 400), Setting()),
    Axis("m", (5, 10, 20, 50, 100, 200), (10, 200), Setting()),
    Axis("T", (0.002, 0.005, 0.01, 0.014, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (0.005, 0.01, 0.02, 0.2, 1.0), Setting()),
    Axis("epsilon", (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0), (0.2, 1.0, 5.0), Setting()),
)
EARLY = ("T", 0.01, 0.02)  # where exponents are fitted
LATE = ("T", 0.1, math.inf)


class Private(Panels):
    """The four panels of the papers' figure; delta = 0.1, alpha = 1/n.

    `bound` is the papers' upper bound with its constants, for their noise at the values of the caption.
    """

    axes = AXES

    @property
    def far(self) -> float:
        """The error of the posterior over the Cramer-Rao bound at the values of the caption, source anywhere."""
        usual = pick(self.points(Place.ANYWHERE, "epsilon"), x=EPSILON)
        ours = pick(self.cells.cells, way=Way.TOLD, noise=Calibration.EXACT)
        return float(ours.emd.value / (usual.limit or math.nan))

    def rises(self, method: Method) -> tuple[float, float]:
        """The error at the smallest and at the largest T over the least, source at 0.5."""
        means = [of(point, method).emd.value for point in self.points(Place.MIDDLE, "T")]
        return means[0] / min(means), means[-1] / min(means)

    def claims(self) -> tuple[Claim, ...]:
        tables, short = f"{LATEST}, Table 1; {FIRST}, Table 1", f"{SHORT}, Table II"
        private = "error of private recovery in"
        return (
            self.rate(
                f"{private} n: O(1 + 1 / sqrt n), exponent 0 for large n",
                f"{tables}; {short}",
                ("n", 100, math.inf),
                0.0,
            ),
            self.rate(f"{private} m: O(1)", tables, ("m", 0.0, math.inf), 0.0),
            self.rate(f"{private} m: O(sqrt m)", short, ("m", 0.0, math.inf), 0.5),
            self.rate(f"{private} T: 1 / T for small T", f"{tables}; {short}", EARLY, -1.0, growing=False),
            self.rate(f"{private} T: T^2.5 for large T (and never above 1)", tables, LATE, 2.5),
            self.rate(f"{private} T: T^2 for large T (and never above 1)", short, LATE, 2.0),
            self._rises(),
        )

    def _rises(self) -> Claim:
        papers, ours = self.rises(Method.PAPERS), self.rises(Method.POSTERIOR)
        return Claim(
            "error of private recovery rises both for small and for large T",
            f"{FIRST}, section 5 and Figure 6c",
            f"{papers[0]:.1f} and {papers[1]:.1f} times the least for the papers, {ours[0]:.1f} and {ours[1]:.1f} "
            "times for the posterior with exact noise",
            Agreement.of(min(papers) > RISES),
        )

    def goals(self) -> tuple[Goal, ...]:
        gain = self.cells.gain.value
        where = f"source anywhere, strength known, ({EPSILON:g}, {self.cells.setting.delta:g})"
        return (
            Goal(f"{where}: papers/ours at least 6", f"{gain:.2f}", gain >= 6),
            Goal(f"{where}: posterior at most 1.15 times the Cramer-Rao bound", f"{self.far:.2f}", self.far <= 1.15),
        )

    def text(self) -> str:
        return (
            "One source of strength 1, and noise that hides a move by one place. Each method adds the noise that it "
            "needs for the same (epsilon, delta): by the papers' formula, or by the exact calibration. The Cramer-Rao "
            f"bound is drawn for both. T is half of the caption's t. {self.how_to_read()}"
        )


def _work(run: Run) -> Private:
    middle, anywhere = run_panels(run, AXES)
    cells = run_cells(run, Setting(), (run.seed, len(AXES) * len(Place)))
    bound = papers_bound(Setting().line, [0.5], Setting().noise(Calibration.PAPER)).value
    return Private(middle=middle, anywhere=anywhere, cells=cells, bound=bound)


EXPERIMENT = Experiment(
    "private-recovery",
    "How the error of private recovery depends on places, sensors, time and epsilon",
    Private,
    _work,
    shows=f"{FIRST}, Figure 6; {SHORT}, Figure 2; {LATEST}, Table 1; {FIRST}, Table 1; "
    f"{SHORT}, Table II; McMillan, Table 8.1",
    minutes=1.5,
)
