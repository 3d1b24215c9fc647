"""Every mistake of the papers that a number can show."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib.figure import Figure

from papers.errata import ELSEWHERE, Erratum, Part, all_errata
from papers.experiment import Experiment, Progress
from papers.result import Agreement, Claim, Finding, Goal, Measure, Table
from papers.style import FAINT, INK, SERIES, log_scale

LARGEST = 1000.0  # factor at the right end of the picture
COLOURS = {
    Agreement.WRONG: SERIES[1],
    Agreement.LOOSER: SERIES[0],
    Agreement.NARROW: SERIES[3],
    Agreement.AGREES: FAINT,
}
COLUMNS = (
    (Part.PHYSICS, Part.PRIVACY, Part.RECOVERY, Part.MEASURES),
    (Part.CONVOLUTION, Part.AUDITING, Part.GRAPHONS, Part.LEARNING),
)
AUTHORS = ("Gilbert and McMillan, ", "Fawaz, Muthukrishnan and Nikolov, ", "McMillan, ")


@dataclass(frozen=True)
class Errata(Finding):
    """What is printed or assumed, what it gives and what is true."""

    size: ClassVar[tuple[float, float]] = (11.0, 8.0)
    found: tuple[Erratum, ...]

    def of(self, part: Part) -> tuple[Erratum, ...]:
        """Those of one part."""
        return tuple(one for one in self.found if one.part is part)

    @property
    def printed(self) -> tuple[Erratum, ...]:
        """Those that are in print."""
        return tuple(one for one in self.found if not one.assumed)

    @property
    def assumed(self) -> tuple[Erratum, ...]:
        """Those that a model assumes."""
        return tuple(one for one in self.found if one.assumed)

    def tables(self) -> tuple[Table, ...]:
        heads = ("where", "says", "number", "printed", "true", "off by", "verdict", "so what")
        parts = [Table(f"Errata: {part}", heads, _rows(self._printed_in(part))) for part in Part]
        heads = ("where", "assumes", "number", "assumed", "true", "off by", "verdict", "so what")
        models = Table("What does not carry over from the papers' model to the real thing", heads, _rows(self.assumed))
        named = tuple((one.where, one.says, one.experiment) for one in ELSEWHERE)
        elsewhere = Table("Mistakes with an experiment of their own", ("where", "says", "experiment"), named)
        return (*parts, models, elsewhere)

    def _printed_in(self, part: Part) -> tuple[Erratum, ...]:
        return tuple(one for one in self.printed if one.part is part)

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
        none = sum(one.factor is None for one in self.found)
        return (
            f"{len(self.printed)} numbers that follow from what is printed, beside what they are: "
            f"{verdicts[Agreement.WRONG]} are wrong, {verdicts[Agreement.LOOSER]} are right and looser than they need "
            f"be. {len(self.assumed)} more follow from a model that the papers assume openly, and "
            f"{verdicts[Agreement.NARROW]} of them do not carry over to real sources, readings and noise: these are no "
            f"mistakes of the papers, and have a table of their own. {len(ELSEWHERE)} further mistakes have an "
            "experiment of their own, and are only named here.",
            "The picture shows by which factor print and truth differ, a line for each place in the papers and a dot "
            f"for each number. {none} of them differ by no factor, since one of the two is 0 or the signs are not the "
            "same. A factor is not how much a mistake matters: a sensitivity that is a little too small breaks a "
            "promise, and a noise formula that is much too large only wastes. What follows is in the last column of "
            "the tables. Everything is computed by the run, from the formulas as they are printed.",
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, 2)
        for axes, parts in zip(panels, COLUMNS, strict=True):
            self._draw_column(axes, parts)
        handles = [
            panels[0].plot([], [], "o", color=COLOURS[verdict], label=str(verdict))[0]
            for verdict in (Agreement.WRONG, Agreement.LOOSER, Agreement.NARROW)
        ]
        handles += panels[0].plot([], [], ">", color=INK, label=f"above {LARGEST:g}, or no factor")
        figure.legend(handles=handles, loc="outside lower center", ncols=4)

    def _draw_column(self, axes: Any, parts: Sequence[Part]) -> None:
        labels: list[str] = []
        for part in parts:
            axes.text(1.05, len(labels), str(part), va="center", weight="bold", color=INK)
            labels.append("")
            for where, own in _by_place(self.of(part)).items():
                axes.axhline(len(labels), color=FAINT, linewidth=0.5, alpha=0.5)
                for one in own:
                    _draw_one(axes, len(labels), one)
                labels.append(where)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.3, -0.7)
        log_scale(axes, (1, 3, 10, 30, 100, 300, 1000))
        axes.set_xlim(0.95, LARGEST * 4)
        axes.grid(axis="x")
        axes.set_xlabel("printed and true differ by this factor")


def _rows(found: Iterable[Erratum]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            one.where,
            one.says,
            one.quantity,
            f"{one.promise} {one.printed:.5g}",
            f"{one.true:.5g}" + (f" ± {one.error:.1g}" if one.error else ""),
            one.off,
            str(one.verdict),
            one.matters,
        )
        for one in found
    )


def _by_place(found: Iterable[Erratum]) -> dict[str, list[Erratum]]:
    """Those of each place in the papers, without the authors, which the part of the picture tells."""
    places: dict[str, list[Erratum]] = {}
    for one in found:
        where = one.where
        for author in AUTHORS:
            where = where.removeprefix(author)
        places.setdefault(where, []).append(one)
    return places


def _draw_one(axes: Any, row: int, one: Erratum) -> None:
    colour = COLOURS[one.verdict]
    if one.factor is None or one.factor > LARGEST:
        axes.plot([LARGEST * 1.5], [row], ">", color=colour, markersize=7)
    else:
        axes.plot([one.factor], [row], "o", color=colour, markersize=6)


def _work(*, quick: bool, seed: int, progress: Progress) -> Errata:
    return Errata(all_errata(quick=quick, seed=seed, progress=progress))


EXPERIMENT = Experiment(
    "errata",
    "Where the papers are wrong, each place with a number",
    Errata,
    _work,
    shows=(
        "Gilbert and McMillan, Definition 1, Lemmas 4, 6, 18 and 20, Proposition 5, Theorems 14 and 15",
        "Fawaz, Muthukrishnan and Nikolov, Algorithm 1",
        "McMillan, Table 9.2, Algorithms 4 and 6, Theorems 10.3 to 10.12, Lemmas 5.2 and 12.6, Corollary 13.6",
    ),
    minutes=0.2,
)
