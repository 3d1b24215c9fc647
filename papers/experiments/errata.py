"""Every mistake of the papers that a number can show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib.figure import Figure

from papers.drawing import FAINT, INK, SERIES, log_x
from papers.errata import Erratum, Part, all_errata
from papers.experiment import Experiment, Run
from papers.result import Agreement, Claim, Finding, Goal, Measure, Table, tabulate

LARGEST = 1000.0  # factor at the right end of the picture
COLORS = {Agreement.WRONG: SERIES[1], Agreement.LOOSER: SERIES[0], Agreement.NARROW: SERIES[3], Agreement.AGREES: FAINT}
COLUMNS = (tuple(Part)[:4], tuple(Part)[4:])
AUTHORS = ("Gilbert and McMillan, ", "Fawaz, Muthukrishnan and Nikolov, ", "McMillan, ")
ELSEWHERE = (
    ("Gilbert and McMillan, Figure 2c", "sqrt(m)/(n T^1.5) is tight in T", "sensitivity"),
    ("Gilbert and McMillan, Table 2, complete graph", "Delta of a complete graph", "graph-table"),
    ("Gilbert and McMillan, Table 2, star", "Delta of a star", "graph-table"),
    ("Gilbert and McMillan, Lemma 6", "Delta >= alpha/kappa", "graph-table"),
    ("Gilbert and McMillan, Lemma 7", "Delta <= 4 nu, conversely", "graph-table"),
    ("Gilbert and McMillan, Lemma 18", "the exponent e^(-tau s_i)", "graph-table"),
    ("Gilbert and McMillan, Figure 3, caption", "5 % between communities, 0.1 % inside", "communities"),
    (
        "Gilbert and McMillan, first version, Lemma 7 and Algorithm 1",
        "the truth is within sigma sqrt(m), with high probability",
        "noisy-recovery",
    ),
    ("Fawaz, Muthukrishnan and Nikolov, section 5.1", "running sums have an error of O(1)", "convolution"),
    ("Fawaz, Muthukrishnan and Nikolov, Theorem 5", "real noise on complex coefficients", "convolution"),
    ("Fawaz, Muthukrishnan and Nikolov, Theorem 5 mended", "the budget of the noise", "convolution"),
    ("McMillan, Theorem 10.8", "Algorithm 4 tests one direction", "testers"),
    ("McMillan, Theorem 10.11", "Algorithm 6 compares counts with probabilities", "testers"),
    ("McMillan, Table 9.1 and Theorem 10.11", "1/beta^2 queries", "testers"),
    ("McMillan, Theorem 10.3", "log(2 lambda/alpha) repetitions", "testers"),
    ("McMillan, Table 5.1, rows 1 and 2", "two groups cannot be found below a threshold", "graphons"),
    ("McMillan, Lemma 4.4, (4.9)", "brackets on delta_2, which may be 0 and 1", "graphons"),
    ("McMillan, Lemma 5.3, proof", "a union bound that is above 1 for small k", "graphons"),
    ("McMillan, Lemma 12.1", "regret of the leader, with the index as printed", "learners"),
    ("McMillan, Definition 12.2", "noise that is used again in each round", "learners"),
    ("McMillan, Lemma 13.7", "E max of Weibull noise", "learners"),
    ("McMillan, Lemma 12.6", "E lambda_max <= log N + 1, measured", "learners"),
)
"""Mistakes that other experiments show: the source as their claims cite it, the statement, the experiment."""


@dataclass(frozen=True)
class Errata(Finding):
    """What is printed or assumed, what follows from it, and what is true."""

    size: ClassVar[tuple[float, float]] = (11.0, 8.0)
    found: tuple[Erratum, ...]

    def tables(self) -> tuple[Table, ...]:
        printed = [one for one in self.found if not one.assumed]
        parts = [_table(f"Errata: {part}", [one for one in printed if one.part is part]) for part in Part]
        models = _table(
            "Assumptions of the papers' models that do not hold for real sources, readings and noise",
            [one for one in self.found if one.assumed],
        )
        columns = ("where", "statement", "experiment")
        return (*parts, models, Table("Mistakes that other experiments show", columns, ELSEWHERE))

    def claims(self) -> tuple[Claim, ...]:
        return tuple(one.claim() for one in self.found)

    def goals(self) -> tuple[Goal, ...]:
        shown = sum(one.verdict is not Agreement.AGREES for one in self.found)
        return (Goal("each mistake is shown by its number", f"{shown} of {len(self.found)}", shown == len(self.found)),)

    def measures(self) -> tuple[Measure, ...]:
        return tuple(one.measure() for one in self.found)

    def paragraphs(self) -> tuple[str, ...]:
        assumed = sum(one.assumed for one in self.found)
        none = sum(one.factor is None for one in self.found)
        return (
            f"{len(self.found) - assumed} numbers follow from printed statements, {assumed} more from a model that the "
            "papers assume openly; the latter are not mistakes and have a table of their own. The run computes "
            f"everything from the formulas as printed. {len(ELSEWHERE)} further mistakes are shown by other "
            "experiments and only listed here.",
            "The picture shows the factor between the printed and the true number: a line for each place in the papers "
            f"and a dot for each number. {none} have no factor, since one of the two is 0 or their signs differ. The "
            "factor does not measure how much a mistake matters: a sensitivity that is a little too small breaks a "
            "promise, and a noise formula that is much too large only wastes accuracy.",
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


def _table(title: str, errata: Iterable[Erratum]) -> Table:
    return tabulate(
        title,
        "where | statement | number | printed | true | difference | verdict | consequence",
        (
            f"{one.where} | {one.says} | {one.quantity} | {one.promise} {one.printed:.5g} | {one.true:.5g}"
            f"{f' ± {one.error:.1g}' if one.error else ''} | {one.off} | {one.verdict} | {one.matters}"
            for one in errata
        ),
    )


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
