"""Makes the pages of results and errata from the results of a full run."""

from collections import Counter
from collections.abc import Sequence

from papers.experiments import EXPERIMENTS
from papers.result import Agreement, Result
from papers.rows import Table

FOLDER = "results"
_WIDE = 24  # characters; cells with more are sentences and are not aligned at the right
_HEAD = """# Results

What each experiment of the laboratory found in the run of `make lab`, with its picture; a test repeats each in a small
size with another seed. `python -m papers show NAME` prints the whole result: every number,
and every claim of the papers with its verdict.

A number after ± is one standard error; bars in pictures are two standard errors. [The
laboratory](laboratory.md#terms) explains the terms, [References](references.md) lists the papers, and
[Errata](errata.md) what is wrong in them.
"""
_ERRATA_HEAD = """# Errata

What is wrong in the papers, each place with a number: what follows from the print, and what is true.
[Results](results.md) has the experiments behind it.
"""


def results_page(results: Sequence[Result]) -> str:
    """Return the page of results."""
    return "\n".join([_HEAD, *map(_section, results), _origin(results)])


def errata_page(results: Sequence[Result]) -> str:
    """Return the page of what is wrong in the papers."""
    wrong = [
        (claim.source, claim.text, claim.found, one.name)
        for one in results
        for claim in one.finding.claims()
        if claim.verdict is Agreement.WRONG
    ]
    columns = ("where", "statement", "found", "experiment")
    table = _markdown(Table("", columns, tuple(sorted(wrong))))
    return f"{_ERRATA_HEAD}\n" + table.replace("_", r"\_").replace("*", r"\*")


def _section(result: Result) -> str:
    claims = result.finding.claims()
    shows = EXPERIMENTS[result.name].shows
    counts = Counter(claim.verdict for claim in claims)
    verdicts = "; ".join(f"{verdict}: {counts[verdict]}" for verdict in Agreement if counts[verdict])
    missed = "; ".join(f"{goal.text}: {goal.reached}" for goal in result.finding.goals() if not goal.met)
    lines = [
        f"\n## {result.name}\n",
        f"**{result.title}.**{f' Repeats {shows}.' if shows else ''}\n",
        f"{result.finding.text()}\n",
        f"Claims of the papers: {verdicts}.\n" if claims else "",
        f"**Missed:** {missed}.\n" if missed else "",
        f"![{result.title}]({FOLDER}/{result.name}.png)\n",
    ]
    return "\n".join(filter(None, lines))


def _origin(results: Sequence[Result]) -> str:
    first = results[0]
    libraries = ", ".join(f"{name} {version}" for name, version in first.libraries.items())
    lines = [
        "\n## Origin of this page\n",
        f"One full run with seed {first.seed} and {libraries}.\n",
    ]
    data = [(one.name, name, digest) for one in results for name, digest in one.data.items()]
    if data:
        rows = tuple((used, name, f"`{digest}`") for used, name, digest in data)
        lines.append(_markdown(Table("", ("experiment", "recording", "SHA-256"), rows)))
    return "\n".join(lines)


def _markdown(table: Table) -> str:
    columns = list(zip(*table.rows, strict=True))
    numbers = [bool(place) and max(map(len, cells)) <= _WIDE for place, cells in enumerate(columns)]
    rows = [table.columns, tuple("---:" if right else "---" for right in numbers), *table.rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in row)} |\n" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
