"""How often 90 % vicinities hold their source."""

from rich.table import Table

from papers import find


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    result = find("vicinities").run()
    (found,) = result.finding.tables()
    table = Table(title=found.title)
    for name in (*found.columns, "goal 88 to 92"):
        table.add_column(name, justify="left" if not name else "right")
    for row, goal in zip(found.rows, result.finding.goals(), strict=True):
        table.add_row(*row, "met" if goal.met else "MISSED")
    return table, result.met
