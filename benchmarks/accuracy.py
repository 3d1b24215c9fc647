"""How near to the truth recovery comes: the papers' pipeline, R, ours, and the limit."""

from statistics import mean

from rich.table import Table

from papers import find
from papers.experiments.estimators import Method
from papers.rows import pick
from papers.trials import Strengths

FRAMES = 200  # a second, on average over one to three sources of known strength


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    finding = find("estimators").run().finding
    table = Table(title="Mean earth mover distance to the truth (line, n=100, m=50, T=0.05; alpha=1/n at (1, 0.1))")
    for name in ("sources", "papers", "R", "ours", "limit", "papers/ours", "ours/R", "ours/limit", "frames/s"):
        table.add_column(name, justify="left" if name == "sources" else "right")
    known = []
    for case in finding.cases:
        papers, pursuit, ours = (
            pick(case.scores, method=method) for method in (Method.PAPERS, Method.PURSUIT, Method.POSTERIOR)
        )
        table.add_row(
            f"{case.count}, {case.strengths}",
            *(str(one.distance) for one in (papers, pursuit, ours)),
            "-" if case.limit is None else f"{case.limit:.4f}",
            f"{papers.distance.value / ours.distance.value:.2f}",
            f"{ours.distance.value / pursuit.distance.value:.2f}",
            "-" if case.limit is None else f"{ours.distance.value / case.limit:.2f}",
            f"{1000 / ours.milliseconds:.0f}",
        )
        if case.strengths == Strengths.UNIT:
            known.append(ours.milliseconds)
    speed = 1000 / mean(known)
    goals = [(goal.text, goal.reached, goal.met) for goal in finding.goals()]
    goals.append((f"unit strengths: at least {FRAMES} frames a second", f"{speed:.0f}", speed >= FRAMES))
    table.caption = "\n".join(f"{text}: {reached}, {'met' if met else 'MISSED'}" for text, reached, met in goals)
    return table, all(met for _, _, met in goals)
