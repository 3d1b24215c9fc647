"""What less noise, another recovery and knowing the strength are each worth: every one with every other."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork._checks import FloatArray
from cloakwork.privacy import Calibration
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, Radius
from papers.experiment import stream
from papers.result import Measure, Table
from papers.trials import PLACES, Mean, Setting, try_with


class Way(StrEnum):
    """How a map is recovered."""

    PAPERS = "R, the papers' radius"
    PURSUIT = "R, calibrated radius"
    TOLD = "posterior, told the strength"
    FREE = "posterior, not told the strength"

    def estimator(self, most: int) -> Estimator:
        """What does it."""
        made: dict[Way, Callable[[], Estimator]] = {
            Way.PAPERS: lambda: BasisPursuit(radius=Radius.PAPER),
            Way.PURSUIT: BasisPursuit,
            Way.TOLD: lambda: PointSources(1.0, most=most),
            Way.FREE: lambda: PointSources((0.0, 1.0), most=most),
        }
        return made[self]()


FRAMES = {Way.PAPERS: 2000, Way.PURSUIT: 2000, Way.TOLD: 2000, Way.FREE: 150}
QUICK_FRAMES = FRAMES | {Way.TOLD: 400, Way.FREE: 10}
NAMES = {Calibration.PAPER: "the papers' noise", Calibration.EXACT: "exact noise"}


@dataclass(frozen=True)
class Cell:
    """One size of noise and one way of recovery."""

    noise: Calibration
    way: Way
    sigma: float
    trials: int
    emd: Mean


@dataclass(frozen=True)
class Cells:
    """Every size of noise with every way of recovery, on the same frames.

    Three factors between mean errors: `gain` is the papers' noise and way over the exact
    noise and the posterior that is told the strength; `noise` is what is left of it with that posterior on both sides;
    `untold` is what not being told costs it.
    """

    setting: Setting
    cells: tuple[Cell, ...]
    gain: Mean
    noise: Mean
    untold: Mean

    @property
    def recovery(self) -> float:
        """What of the gain is not noise: the papers' way over the posterior, both with the papers' noise."""
        return self.gain.value / self.noise.value

    @property
    def noises(self) -> tuple[Calibration, ...]:
        """The sizes of noise, the exact one first."""
        return tuple(dict.fromkeys(cell.noise for cell in self.cells))

    def of(self, way: Way, noise: Calibration = Calibration.EXACT) -> Cell:
        """One cell."""
        return next(cell for cell in self.cells if (cell.way, cell.noise) == (way, noise))

    def table(self) -> Table:
        """A row for each way, a column for each noise."""
        found = {(cell.way, cell.noise): str(cell.emd) for cell in self.cells}
        rows = [(str(way), *(found.get((way, noise), "-") for noise in self.noises)) for way in Way]
        named = [f"{NAMES[noise]}, {self.of(Way.TOLD, noise).sigma:.3f}" for noise in self.noises]
        title = f"Mean earth mover distance of every way of recovery, source anywhere, {self.setting.words()}"
        return Table(title, ("", *(named if len(named) > 1 else ("EMD",))), tuple(rows))

    def measures(self) -> tuple[Measure, ...]:
        """Mean errors and factors, to compare runs by; of the posterior that is not told there are too few frames."""
        cells = [cell for cell in self.cells if cell.way is not Way.FREE]
        means = [Measure(f"{NAMES[one.noise]}, {one.way}", one.emd.value, one.emd.error) for one in cells]
        gains = [Measure("papers/ours", self.gain.value, self.gain.error)]
        if len(self.noises) > 1:
            gains.append(Measure("papers/ours, the part that is noise", self.noise.value, self.noise.error))
        return (*means, *gains)

    def words(self) -> str:
        """What the posterior makes of the same frames when it is not told the strength."""
        free, pursuit = self.of(Way.FREE).emd, self.of(Way.PURSUIT).emd
        no_better = free.value + 2 * free.error >= pursuit.value
        return (
            f"That the posterior is told the strength counts: not told, it has {free} ({self.untold.value:.1f} times "
            f"as much), {'no better than' if no_better else 'against'} the {pursuit} of R with the same noise and a "
            "calibrated radius."
        )


def run_cells(setting: Setting, key: tuple[int, ...], *, quick: bool) -> Cells:
    """All of them; the posterior that is not told the strength is slow, and has the exact noise only."""
    frames = QUICK_FRAMES if quick else FRAMES
    noises = [Calibration.EXACT] if setting.sigma is not None else [Calibration.EXACT, Calibration.PAPER]
    truth = setting.truth(max(frames.values()), stream(*key, PLACES))
    errors: dict[tuple[Way, Calibration], FloatArray] = {}
    cells = []
    for noise in noises:
        for way in Way if noise is Calibration.EXACT else (Way.PAPERS, Way.PURSUIT, Way.TOLD):
            with threadpool_limits(1, user_api="blas"):
                tried = try_with(setting, noise, way.estimator(setting.most), truth[: frames[way]], key)
            errors[way, noise] = tried.distances.emd
            cells.append(Cell(noise, way, tried.sigma, frames[way], Mean.of(tried.distances.emd)))
    ours = errors[Way.TOLD, Calibration.EXACT]
    return Cells(
        setting,
        tuple(cells),
        gain=Mean.ratio(errors[Way.PAPERS, noises[-1]], ours),
        noise=Mean.ratio(errors[Way.TOLD, noises[-1]], ours),
        untold=Mean.ratio(errors[Way.FREE, Calibration.EXACT], ours),
    )
