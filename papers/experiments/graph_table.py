"""The printed sensitivities of the complete graph and the star, and what their errors would do."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import networkx as nx
import numpy as np
from matplotlib.figure import Figure

from cloakwork.physics import Graph
from cloakwork.privacy import Calibration, Profile, largest_mu, paper_mu
from papers.conditioning import Check, Trials, counterexamples, trials
from papers.experiment import Experiment, Progress, stream
from papers.result import Agreement, Claim, Finding, Measure, Table
from papers.style import FAINT, INK, MARKERS, SERIES

EPSILON, DELTA = 1.0, 1e-6  # the claim that is made with a printed sensitivity
NODES, QUICK_NODES = (3, 4, 5, 6, 8, 10, 15, 20, 30, 50), (3, 5, 10, 50)
TIMES, QUICK_TIMES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0), (0.05, 0.2, 0.5, 1.0)
SHOWN = 10  # nodes, where time is varied
TRIED, QUICK_TRIED = 4000, 1000
WORST = (5, 1.0)  # nodes and time of the star whose breach is reported


class Kind(StrEnum):
    """A graph of the papers' table."""

    COMPLETE = "complete graph"
    STAR = "star"

    def graph(self, n: int) -> "nx.Graph[Any]":
        """With n nodes."""
        made: nx.Graph[Any] = nx.complete_graph(n) if self is Kind.COMPLETE else nx.star_graph(n - 1)
        return made

    def printed(self, n: int, tau: float) -> float:
        """Delta^2 of Gilbert and McMillan, Table 2."""
        if self is Kind.COMPLETE:
            return 2 * math.exp(-tau * n)
        other = (math.exp(-tau * n) - math.exp(-tau)) / (n - 1)
        return math.exp(-2 * tau * n) + other**2 + (other + math.exp(-tau)) ** 2

    def corrected(self, n: int, tau: float) -> float:
        """Delta^2 in closed form: the print lacks a 2 in the exponent, and all but one of the other leaves."""
        if self is Kind.COMPLETE:
            return 2 * math.exp(-2 * tau * n)
        return n / (n - 1) * math.exp(-2 * tau * n) + (n - 2) / (n - 1) * math.exp(-2 * tau)

    @property
    def formula(self) -> str:
        """The print, in one line."""
        if self is Kind.COMPLETE:
            return "Delta^2 = 2 e^(-tau n)"
        return "Delta^2 = e^(-2 tau n) + a^2 + (a + e^-tau)^2, a = (e^(-tau n) - e^-tau)/(n-1)"


@dataclass(frozen=True)
class Entry:
    """Delta^2 of one graph: from the matrix exponential, in closed form, and as printed."""

    kind: Kind
    n: int
    tau: float
    exact: float
    corrected: float
    printed: float

    @property
    def short(self) -> float:
        """By what factor Delta as printed is too small (below 1: too large)."""
        return math.sqrt(self.exact / self.printed)

    def true(self, calibration: Calibration) -> Profile:
        """What is really guaranteed when noise is made for the claim with the printed sensitivity."""
        mu = largest_mu(EPSILON, DELTA) if calibration is Calibration.EXACT else paper_mu(EPSILON, DELTA)
        return Profile(mu * self.short)


@dataclass(frozen=True)
class GraphTable(Finding):
    """Printed against true sensitivities, and the lemmas on conditioning."""

    size: ClassVar[tuple[float, float]] = (11.5, 4.0)
    entries: tuple[Entry, ...]
    checks: tuple[Check, ...]
    trials: tuple[Trials, ...]

    def of(self, kind: Kind, n: int, tau: float) -> Entry:
        """One entry."""
        return next(one for one in self.entries if (one.kind, one.n, one.tau) == (kind, n, tau))

    def along_time(self, kind: Kind) -> tuple[Entry, ...]:
        """The entries of a graph with 10 nodes, by time."""
        return tuple(one for one in self.entries if one.kind is kind and one.n == SHOWN)

    def along_nodes(self) -> tuple[Entry, ...]:
        """The stars at one time, by number of nodes."""
        return tuple(one for one in self.entries if one.kind is Kind.STAR and one.tau == WORST[1])

    @property
    def worst(self) -> Entry:
        """The star whose breach is reported."""
        return self.of(Kind.STAR, *WORST)

    def tables(self) -> tuple[Table, ...]:
        return (self._values(), self._breach(), self._lemmas())

    def _values(self) -> Table:
        rows = [
            (
                f"{one.kind}, tau = {one.tau:g}",
                f"{one.exact:.6g}",
                f"{one.corrected:.6g}",
                f"{one.printed:.6g}",
                f"{math.sqrt(one.printed / one.exact):.3f}",
            )
            for kind in Kind
            for one in self.along_time(kind)
        ]
        columns = ("graph", "exact", "closed form", "printed", "Delta printed / true")
        return Table(f"Delta^2 with {SHOWN} nodes and alpha = 1", columns, tuple(rows))

    def _breach(self) -> Table:
        rows = []
        for one in self.along_nodes():
            exact, papers = one.true(Calibration.EXACT), one.true(Calibration.PAPER)
            leaks = exact.delta(EPSILON) / DELTA
            eps = f"{exact.epsilon(DELTA):.4f}", f"{papers.epsilon(DELTA):.4f}"
            rows.append((str(one.n), f"{one.short:.4f}", eps[0], f"{leaks:.2f}", eps[1]))
        names = (
            "nodes",
            "Delta true / printed",
            f"true epsilon at {DELTA:g}",
            "true delta / claimed",
            "true epsilon, papers' noise",
        )
        title = f"Star, tau = {WORST[1]:g}: noise for ({EPSILON:g}, {DELTA:g}) made with the printed sensitivity"
        return Table(title, names, tuple(rows))

    def _lemmas(self) -> Table:
        rows = [
            (
                f"{one.lemma}: {one.matrix}",
                f"Delta {'>=' if one.at_least else '<='} {one.promised:.4g}",
                f"{one.true:.4g}",
                "holds" if one.held else "VIOLATED",
            )
            for one in self.checks
        ]
        rows += [
            (f"{one.lemma}: {one.kind}", f"{one.tried} tried", "-", f"{one.violated} violated") for one in self.trials
        ]
        return Table("Condition and privacy, alpha = 1", ("lemma: matrix", "promised", "Delta", ""), tuple(rows))

    def claims(self) -> tuple[Claim, ...]:
        found = []
        for kind in Kind:
            entries = [one for one in self.entries if one.kind is kind]
            far = max(entries, key=lambda one: abs(math.log(one.short)))
            side = "too small: less noise than privacy needs" if far.short > 1 else "too large: more noise than needed"
            said = f"n = {far.n}, tau = {far.tau:g}: true {far.exact:.4g}, printed {far.printed:.4g}, {side}"
            found.append(Claim(kind.formula, f"Gilbert and McMillan, Table 2, {kind}", said, _equal(entries)))
        rank, converse, uneven, literal, corrected = self.checks
        found.append(rank.claim("Delta >= alpha/kappa for every M with norm 1", "Gilbert and McMillan, Lemma 6"))
        found.append(
            converse.claim("if all but one singular value vanish, Delta <= 4 nu", "Gilbert and McMillan, Lemma 7")
        )
        found.append(
            uneven.claim("a matrix can be ill-conditioned and hide nothing", "Gilbert and McMillan, section 2.1")
        )
        found.append(literal.claim("Delta <= sum_k e^(-tau s_i) |U_ik - U_jk|", "Gilbert and McMillan, Lemma 18"))
        found.append(corrected.claim("the same with e^(-tau s_k)", "McMillan, Lemma 8.9"))
        return tuple(found)

    def measures(self) -> tuple[Measure, ...]:
        profile = self.worst.true(Calibration.EXACT)
        return (
            Measure("star: Delta true / printed", self.worst.short),
            Measure("star: true epsilon", profile.epsilon(DELTA)),
            Measure("star: true delta over claimed", profile.delta(EPSILON) / DELTA),
            Measure("complete graph: Delta printed / true", 1 / self.of(Kind.COMPLETE, SHOWN, 0.5).short),
            *(_share(one) for one in self.trials),
        )

    def words(self) -> tuple[str, ...]:
        star, complete = self.worst, self.of(Kind.COMPLETE, SHOWN, 0.5)
        none, some = self.trials[1], self.trials[2]
        failed = "fails" if not self.checks[0].held else "holds"
        return (
            "Dots are computed from the matrix exponential, lines are formulas. On the complete graph the printed "
            f"exponent lacks a 2: with {complete.n} nodes and tau = {complete.tau:g} it asks for "
            f"{1 / complete.short:.1f} times the noise that is needed. {_meaning(complete)}",
            "On the star the print forgets all but one of the other leaves: the true Delta is up to "
            f"{max(one.short for one in self.along_nodes()):.2f} times the printed one. {_promise(star)}",
            "The lemmas that tie sensitivity to the condition number need more than they say. Without full column rank "
            f"Lemma 6 {failed} ({self.checks[0].matrix}), and the converse in Lemma 7 fails for {some.violated} of "
            f"{some.tried} random matrices of mixed signs, but for {none.violated} of {none.tried} without negative "
            "entries.",
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        for axes, kind in zip(panels[:2], Kind, strict=True):
            _draw_kind(axes, kind, self.along_time(kind))
        self._draw_breach(panels[2])

    def _draw_breach(self, axes: Any) -> None:
        own = self.along_nodes()
        x = range(len(own))
        for number, (calibration, name) in enumerate(
            ((Calibration.EXACT, "exact noise"), (Calibration.PAPER, "the papers' noise"))
        ):
            epsilons = [one.true(calibration).epsilon(DELTA) for one in own]
            axes.plot(x, epsilons, marker=MARKERS[number], color=SERIES[number], label=f"{name}, printed Delta")
        axes.axhline(EPSILON, color=INK, linestyle=":", linewidth=1)
        axes.text(len(own) - 1, EPSILON - 0.02, "claimed", fontsize=9, color=INK, va="top", ha="right")
        axes.set_xticks(list(x), [str(one.n) for one in own])
        axes.set_ylim(0, 1.25)
        axes.set_title(f"star: epsilon really given, tau = {WORST[1]:g}")
        axes.set_xlabel("nodes")
        axes.set_ylabel(f"epsilon at delta = {DELTA:g}")
        axes.grid(axis="y")
        axes.legend(loc="center right", fontsize=8)


def _draw_kind(axes: Any, kind: Kind, own: tuple[Entry, ...]) -> None:
    times = np.linspace(0.0, own[-1].tau, 100)
    axes.plot(times, [kind.printed(SHOWN, tau) for tau in times], color=SERIES[1], linestyle="--", label="printed")
    axes.plot(times, [kind.corrected(SHOWN, tau) for tau in times], color=SERIES[0], label="corrected")
    axes.plot([one.tau for one in own], [one.exact for one in own], "o", color=INK, markersize=4, label="exact")
    axes.set_yscale("log")
    axes.set_title(f"{kind}, {SHOWN} nodes")
    axes.set_xlabel(r"$\tau$")
    axes.set_ylabel(r"$\Delta_2(A_G)^2$")
    axes.grid(color=FAINT, alpha=0.3)
    axes.legend(fontsize=8)


def _meaning(one: Entry) -> str:
    return "That wastes, but hides." if one.short <= 1 else "That is less than privacy needs."


def _promise(star: Entry) -> str:
    """What becomes of a claim that is made with the printed sensitivity of a star, by both ways to make noise."""
    exact, papers = star.true(Calibration.EXACT), star.true(Calibration.PAPER)
    broken = exact.epsilon(DELTA) > EPSILON
    covered = papers.epsilon(DELTA) <= EPSILON
    said = (
        f"Noise that is made exactly for ({EPSILON:g}, {DELTA:g}) with it gives, on {star.n} nodes at "
        f"tau = {star.tau:g}, epsilon {exact.epsilon(DELTA):.3f} at the same delta, or "
        f"{exact.delta(EPSILON) / DELTA:.1f} times the delta at the same epsilon: the promise is "
        f"{'broken' if broken else 'kept'}. With the papers' own noise formula epsilon is {papers.epsilon(DELTA):.2f}"
    )
    return said + (": one error hides the other." if broken and covered else ".")


def _equal(entries: list[Entry]) -> Agreement:
    """Whether a printed value is the true one wherever it was computed."""
    same = all(abs(one.printed / one.exact - 1) < 1e-3 for one in entries)
    return Agreement.AGREES if same else Agreement.WRONG


def _share(one: Trials) -> Measure:
    share = one.violated / one.tried
    error = math.sqrt(max(share * (1 - share), 0.25 / one.tried) / one.tried)
    return Measure(f"{one.lemma}, {one.kind}: share violated", share, error, share=True)


def _work(*, quick: bool, seed: int, progress: Progress) -> GraphTable:
    nodes, times = (QUICK_NODES, QUICK_TIMES) if quick else (NODES, TIMES)
    wanted = {(Kind.STAR, n, WORST[1]) for n in nodes} | {(kind, SHOWN, tau) for kind in Kind for tau in times}
    entries = []
    for done, (kind, n, tau) in enumerate(sorted(wanted)):
        slope = Graph(kind.graph(n), tau=tau).joint_slope().value
        entries.append(Entry(kind, n, tau, slope**2, kind.corrected(n, tau), kind.printed(n, tau)))
        progress(done + 1, len(wanted) + 1)
    tried = trials(QUICK_TRIED if quick else TRIED, stream(seed, 0))
    progress(len(wanted) + 1, len(wanted) + 1)
    return GraphTable(tuple(entries), counterexamples(), tried)


EXPERIMENT = Experiment(
    "graph-table",
    "The printed sensitivities of two graphs, and the lemmas on conditioning",
    GraphTable,
    _work,
    shows=("Gilbert and McMillan, Table 2", "McMillan, Table 8.2", "Gilbert and McMillan, Lemmas 6 and 7"),
    minutes=0.1,
)
