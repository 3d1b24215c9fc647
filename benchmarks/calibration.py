"""How often 90 % vicinities hold their source."""

from rich.table import Table

from papers import find
from papers.experiments.vicinities import Calibrated


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    result = find("vicinities").run()
    assert isinstance(result.finding, Calibrated)
    table = Table("", "contained, %", "frames", "goal 88 to 92", title="Sources that their 90 % vicinity contains")
    for one, goal in zip(result.finding.settings, result.finding.goals(), strict=True):
        table.add_row(one.name, one.percent, f"{one.frames:,}", "met" if goal.met else "MISSED")
    return table, result.met
