"""The printed sensitivities of the complete graph and the star, and the effect of their errors."""

import math
from enum import StrEnum
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.figure import Figure

from cloakwork.physics import Graph
from cloakwork.privacy import Profile, largest_mu
from papers.calibration import Calibration, paper_mu
from papers.conditioning import claim, counterexamples, random_matrices
from papers.drawing import FAINT, INK, SERIES, curve, finish
from papers.experiment import Experiment, Run, stream
from papers.result import Agreement, Claim, Finding
from papers.rows import Row, pick, picked

EPSILON, DELTA = 1.0, 1e-6  # the claim that is made with a printed sensitivity
NODES, QUICK_NODES = (3, 4, 5, 6, 8, 10, 15, 20, 30, 50), (3, 5, 10, 50)
TIMES, QUICK_TIMES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0), (0.05, 0.2, 0.5, 1.0)
MATRICES, QUICK_MATRICES = 4000, 300  # random ones that each lemma is tried on
SHOWN = 10  # nodes where time varies
BREACH = (5, 1.0)  # nodes and time of the star whose breach is reported


class Kind(StrEnum):
    """A graph of the papers' table."""

    COMPLETE = "complete graph"
    STAR = "star"

    def graph(self, n: int) -> "nx.Graph[Any]":
        made: nx.Graph[Any] = nx.complete_graph(n) if self is Kind.COMPLETE else nx.star_graph(n - 1)
        return made

    def printed(self, n: int, tau: float) -> float:
        """Delta^2 of Gilbert and McMillan, Table 2."""
        if self is Kind.COMPLETE:
            return 2 * math.exp(-tau * n)
        other = (math.exp(-tau * n) - math.exp(-tau)) / (n - 1)
        return math.exp(-2 * tau * n) + other**2 + (other + math.exp(-tau)) ** 2

    def corrected(self, n: int, tau: float) -> float:
        """Delta^2 in closed form: the printed one lacks a 2 in the exponent, and all but one of the other leaves."""
        if self is Kind.COMPLETE:
            return 2 * math.exp(-2 * tau * n)
        return n / (n - 1) * math.exp(-2 * tau * n) + (n - 2) / (n - 1) * math.exp(-2 * tau)


FORMULAS = {
    Kind.COMPLETE: "Delta^2 = 2 e^(-tau n)",
    Kind.STAR: "Delta^2 = e^(-2 tau n) + a^2 + (a + e^-tau)^2, a = (e^(-tau n) - e^-tau)/(n-1)",
}


def short(entry: Row) -> float:
    """The factor by which the printed Delta is too small (below 1: too large)."""
    return math.sqrt(entry.exact / entry.printed)


def true(entry: Row, calibration: Calibration) -> Profile:
    """The privacy of noise that is calibrated to the claim with the printed sensitivity."""
    mu = largest_mu(EPSILON, DELTA) if calibration is Calibration.EXACT else paper_mu(EPSILON, DELTA)
    return Profile(mu * short(entry))


class GraphTable(Finding):
    """Printed against true sensitivities, and the lemmas on conditioning."""

    size = (11.5, 4.0)

    def claims(self) -> tuple[Claim, ...]:
        claims = []
        for kind in Kind:
            entries = list(picked(self.entries, kind=kind))
            worst = max(entries, key=lambda one: abs(math.log(short(one))))
            side = (
                "too small: less noise than privacy needs" if short(worst) > 1 else "too large: more noise than needed"
            )
            found = f"n = {worst.n}, tau = {worst.tau:g}: true {worst.exact:.4g}, printed {worst.printed:.4g}, {side}"
            same = all(abs(one.printed / one.exact - 1) < 1e-3 for one in entries)
            claims.append(Claim(FORMULAS[kind], f"Gilbert and McMillan, Table 2, {kind}", found, Agreement.of(same)))
        texts = (
            ("Delta >= alpha/kappa for every M with norm 1", "Gilbert and McMillan, Lemma 6"),
            ("if all but one singular value vanish, Delta <= 4 nu", "Gilbert and McMillan, Lemma 7"),
            ("a matrix can be ill-conditioned and hide nothing", "Gilbert and McMillan, section 2.1"),
            ("Delta <= sum_k e^(-tau s_i) |U_ik - U_jk|", "Gilbert and McMillan, Lemma 18"),
            ("the same with e^(-tau s_k)", "McMillan, Lemma 8.9"),
        )
        return (*claims, *(claim(check, *text) for check, text in zip(self.checks, texts, strict=True)))

    def text(self) -> str:
        star = pick(self.entries, kind=Kind.STAR, n=BREACH[0], tau=BREACH[1])
        complete = pick(self.entries, kind=Kind.COMPLETE, n=SHOWN, tau=0.5)
        exact, papers = (true(star, calibration) for calibration in Calibration)
        return (
            "Dots are computed from the matrix exponential, lines are formulas. The printed exponent of the complete "
            f"graph lacks a 2: with {complete.n} nodes and tau = {complete.tau:g} it asks for "
            f"{1 / short(complete):.1f} times the noise that is needed. The printed formula of the star omits all but "
            f"one of the other leaves. Noise that is calibrated exactly to ({EPSILON:g}, {DELTA:g}) with the printed "
            f"Delta has, on {star.n} nodes at tau = {star.tau:g}, epsilon {exact.epsilon(DELTA):.3f} at the same "
            f"delta: it breaks its promise. With the papers' own noise formula epsilon is {papers.epsilon(DELTA):.2f}: "
            "the excess noise of that formula covers the error."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        for axes, kind in zip(panels[:2], Kind, strict=True):
            _draw_kind(axes, kind, list(picked(self.entries, kind=kind, n=SHOWN)))
        axes, stars = panels[2], list(picked(self.entries, kind=Kind.STAR, tau=BREACH[1]))
        for number, (calibration, name) in enumerate(zip(Calibration, ("exact noise", "papers' noise"), strict=True)):
            epsilons = [true(one, calibration).epsilon(DELTA) for one in stars]
            curve(axes, range(len(stars)), epsilons, number, label=f"{name}, printed Delta")
        axes.axhline(EPSILON, color=INK, linestyle=":", linewidth=1)
        axes.text(len(stars) - 1, EPSILON - 0.02, "claimed", fontsize=9, color=INK, va="top", ha="right")
        axes.set_xticks(range(len(stars)), [str(one.n) for one in stars])
        title = f"star: true epsilon, tau = {BREACH[1]:g}"
        finish(axes, title, "nodes", f"epsilon at delta = {DELTA:g}", legend=8, where="center right", ylim=(0, 1.25))
        axes.grid(visible=False, axis="x")


def _draw_kind(axes: Any, kind: Kind, entries: list[Row]) -> None:
    times = np.linspace(0.0, entries[-1].tau, 100)
    axes.plot(times, [kind.printed(SHOWN, tau) for tau in times], color=SERIES[1], linestyle="--", label="printed")
    axes.plot(times, [kind.corrected(SHOWN, tau) for tau in times], color=SERIES[0], label="corrected")
    axes.plot([one.tau for one in entries], [one.exact for one in entries], "o", color=INK, markersize=4, label="exact")
    axes.set_yscale("log")
    finish(axes, f"{kind}, {SHOWN} nodes", r"$\tau$", r"$\Delta_2(A_G)^2$", legend=8)
    axes.grid(color=FAINT, alpha=0.3)


def _work(run: Run) -> GraphTable:
    nodes, times = run.choose((NODES, TIMES), (QUICK_NODES, QUICK_TIMES), (QUICK_NODES, QUICK_TIMES))
    cases = {(Kind.STAR, n, BREACH[1]) for n in nodes} | {(kind, SHOWN, tau) for kind in Kind for tau in times}
    entries = []
    for kind, n, tau in sorted(cases):
        slope = Graph(kind.graph(n), tau=tau).moves().steepest().value
        corrected, printed = kind.corrected(n, tau), kind.printed(n, tau)
        entries.append(Row(kind=kind, n=n, tau=tau, exact=slope**2, corrected=corrected, printed=printed))
    trials = random_matrices(run.choose(MATRICES, QUICK_MATRICES, 30), stream(run.seed, 0))
    # processors differ in the eigenvectors of a multiple eigenvalue, on which the last two checks depend
    checks = counterexamples()[: run.choose(5, 5, 3)]
    return GraphTable(entries=tuple(entries), checks=checks, trials=trials)


EXPERIMENT = Experiment(
    "graph-table",
    "The printed sensitivities of two graphs, and the lemmas on conditioning",
    GraphTable,
    _work,
    shows="Gilbert and McMillan, Table 2; McMillan, Table 8.2; Gilbert and McMillan, Lemmas 6 and 7",
    minutes=0.1,
)
