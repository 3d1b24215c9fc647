"""Where the papers are wrong, each mistake with a number: what follows from the print, and what is true."""

from papers.errata.auditing import auditing
from papers.errata.learning import graphons, learning
from papers.errata.measures import measures
from papers.errata.physics import physics, recovery
from papers.errata.privacy import convolution, privacy
from papers.experiment import Run
from papers.rows import Row

PARTS = {
    "physics": physics,
    "privacy": privacy,
    "recovery": recovery,
    "measures": measures,
    "convolution": convolution,
    "auditing": auditing,
    "graphons": graphons,
    "learning": learning,
}
"""The subjects of mistakes."""


def all_errata(run: Run) -> tuple[Row, ...]:
    """Find every mistake that a number can show; each part has random numbers of its own."""
    found: list[Row] = []
    for number, part in enumerate(PARTS):
        found += [Row(part=part, **vars(one)) for one in PARTS[part](run, (run.seed, number))]
    return tuple(found)
