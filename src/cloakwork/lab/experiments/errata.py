"""Every mistake of the papers that a number can show."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib.figure import Figure

from cloakwork.lab.errata import Erratum, Part, all_errata
from cloakwork.lab.experiment import Experiment, Progress
from cloakwork.lab.result import Agreement, Claim, Finding, Goal, Measure, Table
from cloakwork.lab.style import FAINT, INK, SERIES, log_scale

LARGEST = 1000.0  # factor at the right end of the picture
COLOURS = {Agreement.WRONG: SERIES[1], Agreement.LOOSER: SERIES[0], Agreement.AGREES: FAINT}


@dataclass(frozen=True)
class Errata(Finding):
    """What is printed, what it gives and what is true."""

    size: ClassVar[tuple[float, float]] = (12.0, 15.0)
    found: tuple[Erratum, ...]

    def of(self, part: Part) -> tuple[Erratum, ...]:
        """Those of one part."""
        return tuple(one for one in self.found if one.part is part)

    def tables(self) -> tuple[Table, ...]:
        return tuple(self._table(part) for part in Part)

    def _table(self, part: Part) -> Table:
        rows = [
            (
                one.where,
                one.says,
                one.quantity,
                f"{one.promise} {one.printed:.5g}",
                f"{one.true:.5g}" + (f" ± {one.error:.1g}" if one.error else ""),
                one.off,
                one.matters,
            )
            for one in self.of(part)
        ]
        names = ("where", "says", "number", "printed", "true", "off by", "so what")
        return Table(f"Errata: {part}", names, tuple(rows))

    def claims(self) -> tuple[Claim, ...]:
        return tuple(one.claim() for one in self.found)

    def goals(self) -> tuple[Goal, ...]:
        shown = sum(one.verdict is not Agreement.AGREES for one in self.found)
        text = "each mistake is shown by its number"
        return (Goal(text, f"{shown} of {len(self.found)}", shown == len(self.found)),)

    def measures(self) -> tuple[Measure, ...]:
        return tuple(one.measure() for one in self.found)

    def words(self) -> tuple[str, ...]:
        verdicts = Counter(one.verdict for one in self.found)
        wrong = [one for one in self.found if one.verdict is Agreement.WRONG]
        largest = max(wrong, key=lambda one: one.factor or 0.0)
        none = sum(one.factor is None for one in self.found)
        return (
            f"{len(self.found)} numbers that follow from what is printed, beside what they are: "
            f"{verdicts[Agreement.WRONG]} are wrong, {verdicts[Agreement.LOOSER]} are right and looser than they need "
            f"be. The picture shows by which factor print and truth differ; {none} of them differ by no factor, since "
            f"one of the two is 0 or the signs are not the same. The largest factor is {largest.factor:.3g} "
            f"({largest.where}: {largest.quantity}).",
            "A factor is not how much a mistake matters: a sensitivity that is a little too small breaks a promise, "
            "and a noise formula that is much too large only wastes. What follows is in the last column of the tables. "
            "Everything is computed by the run, from the formulas as they are printed.",
        )

    def draw(self, figure: Figure) -> None:
        axes = figure.add_subplot()
        row, ticks, labels = 0, [], []
        for part in Part:
            axes.text(0.93, row, str(part), ha="right", va="center", fontsize=9, weight="bold", color=INK)
            row += 1
            for one in self.of(part):
                _draw_one(axes, row, one)
                ticks.append(row)
                labels.append(_label(one))
                row += 1
        axes.set_yticks(ticks, labels, fontsize=7)
        axes.set_ylim(row - 0.3, -0.7)
        log_scale(axes, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000))
        axes.set_xlim(0.95, LARGEST * 2.2)
        axes.grid(axis="x")
        axes.set_xlabel("printed and true differ by this factor (triangle: one is 0 or of the other sign)")
        for verdict in (Agreement.WRONG, Agreement.LOOSER):
            axes.plot([], [], "o", color=COLOURS[verdict], label=str(verdict))
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _draw_one(axes: Any, row: int, one: Erratum) -> None:
    colour = COLOURS[one.verdict]
    if one.factor is None:
        axes.plot([LARGEST * 1.5], [row], ">", color=colour, markersize=7)
        return
    shown = min(one.factor, LARGEST)
    axes.plot([1.0, shown], [row, row], color=colour, linewidth=1.5)
    axes.plot([shown], [row], "o", color=colour, markersize=5)
    if one.factor > LARGEST:
        axes.text(shown * 1.1, row, f"{one.factor:.0e}", fontsize=7, va="center", color=INK)


def _label(one: Erratum) -> str:
    """Where and what, without the authors, on one line."""
    where = one.where.removeprefix("Gilbert and McMillan, ").removeprefix("Fawaz, Muthukrishnan and Nikolov, ")
    text = f"{where}: {one.quantity}"
    return text if len(text) <= 95 else text[:94] + "…"


def _work(*, quick: bool, seed: int, progress: Progress) -> Errata:
    return Errata(all_errata(quick=quick, seed=seed, progress=progress))


EXPERIMENT = Experiment(
    "errata",
    "Where the papers are wrong, each place with a number",
    Errata,
    _work,
    shows=(
        "Gilbert and McMillan, Definition 1, Lemmas 4 to 7, 18 and 20, Theorems 14 and 15, Algorithm 1, Table 2",
        "Fawaz, Muthukrishnan and Nikolov, Algorithm 1 and Theorem 5",
        "McMillan, Tables 9.2, Algorithms 3 to 6, Lemmas 5.2 and 12.6, Corollary 13.6",
    ),
    minutes=0.2,
)
