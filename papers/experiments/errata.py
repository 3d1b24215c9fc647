"""Every mistake of the papers that a number can show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib.figure import Figure

from papers.drawing import FAINT, INK, SERIES, log_x
from papers.errata import Erratum, Part, all_errata
from papers.experiment import Experiment, Run
from papers.result import Agreement, Claim, Finding, Goal, Measure

LARGEST = 1000.0  # factor at the right end of the picture
COLORS = {Agreement.WRONG: SERIES[1], Agreement.LOOSER: SERIES[0], Agreement.NARROW: SERIES[3], Agreement.AGREES: FAINT}
COLUMNS = (tuple(Part)[:4], tuple(Part)[4:])
AUTHORS = ("Gilbert and McMillan, ", "Fawaz, Muthukrishnan and Nikolov, ", "McMillan, ")


@dataclass(frozen=True)
class Errata(Finding):
    """What is printed or assumed, what follows from it, and what is true."""

    size: ClassVar[tuple[float, float]] = (11.0, 8.0)
    found: tuple[Erratum, ...]

    def claims(self) -> tuple[Claim, ...]:
        return tuple(one.claim() for one in self.found)

    def goals(self) -> tuple[Goal, ...]:
        shown = sum(one.verdict is not Agreement.AGREES for one in self.found)
        return (Goal("each mistake is shown by its number", f"{shown} of {len(self.found)}", shown == len(self.found)),)

    def measures(self) -> tuple[Measure, ...]:
        return tuple(one.measure() for one in self.found)

    def text(self) -> str:
        assumed = sum(one.assumed for one in self.found)
        return (
            f"{len(self.found) - assumed} numbers follow from printed statements, {assumed} more from a model that the "
            "papers assume openly; the latter are not mistakes. The run computes everything from the formulas as "
            "printed. Other experiments show further mistakes; [Errata](errata.md) has all of them."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, 2)
        for axes, parts in zip(panels, COLUMNS, strict=True):
            self._draw_column(axes, parts)
        handles = [
            panels[0].plot([], [], "o", color=COLORS[verdict], label=str(verdict))[0]
            for verdict in (Agreement.WRONG, Agreement.LOOSER, Agreement.NARROW)
        ]
        handles += panels[0].plot([], [], ">", color=INK, label=f"above {LARGEST:g}, or no factor")
        figure.legend(handles=handles, loc="outside lower center", ncols=4)

    def _draw_column(self, axes: Any, parts: Sequence[Part]) -> None:
        labels: list[str] = []
        for part in parts:
            axes.text(1.05, len(labels), str(part), va="center", weight="bold", color=INK)
            labels.append("")
            for where, errata in _by_place(one for one in self.found if one.part is part).items():
                axes.axhline(len(labels), color=FAINT, linewidth=0.5, alpha=0.5)
                for one in errata:
                    beyond = one.factor is None or one.factor > LARGEST
                    x, look = (LARGEST * 1.5, ">") if beyond else (one.factor, "o")
                    axes.plot([x], [len(labels)], look, color=COLORS[one.verdict], markersize=7 if beyond else 6)
                labels.append(where)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.3, -0.7)
        log_x(axes, (1, 3, 10, 30, 100, 300, 1000))
        axes.set_xlim(0.95, LARGEST * 4)
        axes.grid(axis="x")
        axes.set_xlabel("factor between the printed and the true number")


def _by_place(errata: Iterable[Erratum]) -> dict[str, list[Erratum]]:
    """Group errata by their place in the papers, without the authors, which follow from the part."""
    places: dict[str, list[Erratum]] = {}
    for one in errata:
        where = one.where
        for author in AUTHORS:
            where = where.removeprefix(author)
        places.setdefault(where, []).append(one)
    return places


def _work(run: Run) -> Errata:
    return Errata(all_errata(run))


EXPERIMENT = Experiment(
    "errata",
    "Where the papers are wrong, each place with a number",
    Errata,
    _work,
    shows="Gilbert and McMillan, Definition 1, Lemmas 4, 6, 18 and 20, Proposition 5, Theorems 14 and 15; Gilbert and "
    "McMillan, first version, Lemma 5; Fawaz, Muthukrishnan and Nikolov, Algorithm 1, (4), sections 1 and 5.1; "
    "McMillan, Lemma 1.3, Corollary 3.4, Table 9.2, Algorithms 4 and 6, Lemma 10.6, Theorems 10.3 to 10.12, "
    "Lemmas 5.2 and 12.6, Corollaries 12.7 and 13.6",
    minutes=0.2,
)
