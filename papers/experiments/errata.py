"""Every mistake of the papers that a number can show."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from papers.drawing import FAINT, INK, SERIES, finish
from papers.errata import PARTS, all_errata
from papers.errata.erratum import claim, factor, verdict
from papers.experiment import Experiment, Run
from papers.result import Agreement, Claim, Finding, Goal
from papers.rows import picked

LARGEST = 1000.0  # factor at the right end of the picture
COLORS = {Agreement.WRONG: SERIES[1], Agreement.LOOSER: SERIES[0], Agreement.NARROW: SERIES[3], Agreement.AGREES: FAINT}
AUTHORS = ("Gilbert and McMillan, ", "Fawaz, Muthukrishnan and Nikolov, ", "McMillan, ")


class Errata(Finding):
    """What is printed or assumed, what follows from it, and what is true."""

    size = (11.0, 8.0)

    def claims(self) -> tuple[Claim, ...]:
        return tuple(map(claim, self.found))

    def goals(self) -> tuple[Goal, ...]:
        shown = sum(verdict(one) is not Agreement.AGREES for one in self.found)
        return (Goal("each mistake is shown by its number", f"{shown} of {len(self.found)}", shown == len(self.found)),)

    def text(self) -> str:
        assumed = sum(one.assumed for one in self.found)
        return (
            f"{len(self.found) - assumed} numbers follow from printed statements, {assumed} more from a model that the "
            "papers assume openly; the latter are not mistakes. The run computes everything from the formulas as "
            "printed. Other experiments show further mistakes; [Errata](errata.md) has all of them."
        )

    def draw(self, figure: Figure) -> None:
        panels, parts = figure.subplots(1, 2), list(PARTS)
        for axes, own in zip(panels, (parts[:4], parts[4:]), strict=True):
            self._draw_column(axes, own)
        handles = [
            panels[0].plot([], [], "o", color=COLORS[one], label=str(one))[0]
            for one in (Agreement.WRONG, Agreement.LOOSER, Agreement.NARROW)
        ]
        handles += panels[0].plot([], [], ">", color=INK, label=f"above {LARGEST:g}, or no factor")
        figure.legend(handles=handles, loc="outside lower center", ncols=4)

    def _draw_column(self, axes: Any, parts: Sequence[str]) -> None:
        """Draw a row for each place in the papers, without the authors, which follow from the part."""
        labels: list[str] = []
        for part in parts:
            axes.text(1.05, len(labels), part, va="center", weight="bold", color=INK)
            labels.append("")
            rows: dict[str, int] = {}
            for one in picked(self.found, part=part):
                where = one.where
                for author in AUTHORS:
                    where = where.removeprefix(author)
                if where not in rows:
                    rows[where] = len(labels)
                    axes.axhline(rows[where], color=FAINT, linewidth=0.5, alpha=0.5)
                    labels.append(where)
                apart = factor(one)
                beyond = apart is None or apart > LARGEST
                x, look = (LARGEST * 1.5, ">") if beyond else (apart, "o")
                axes.plot([x], [rows[where]], look, color=COLORS[verdict(one)], markersize=7 if beyond else 6)
        axes.set_yticks(range(len(labels)), labels)
        limits: Any = {"xlim": (0.95, LARGEST * 4), "ylim": (len(labels) - 0.3, -0.7)}
        finish(axes, x="factor between the printed and the true number", ticks=(1, 3, 10, 30, 100, 300, 1000), **limits)
        axes.grid(visible=False, axis="y")


def _work(run: Run) -> Errata:
    return Errata(found=all_errata(run))


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
