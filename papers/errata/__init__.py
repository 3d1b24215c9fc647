"""Where the papers are wrong, each mistake with a number: what follows from the print, and what is true."""

from papers.errata.auditing import auditing
from papers.errata.erratum import Erratum, Part
from papers.errata.learning import graphons, learning
from papers.errata.measures import measures
from papers.errata.physics import physics, recovery
from papers.errata.privacy import convolution, privacy
from papers.experiment import Run

_PARTS = {
    Part.PHYSICS: physics,
    Part.PRIVACY: privacy,
    Part.RECOVERY: recovery,
    Part.MEASURES: measures,
    Part.CONVOLUTION: convolution,
    Part.AUDITING: auditing,
    Part.GRAPHONS: graphons,
    Part.LEARNING: learning,
}


def all_errata(run: Run) -> tuple[Erratum, ...]:
    """Find every mistake that a number can show; each part has random numbers of its own."""
    found: list[Erratum] = []
    for number, part in enumerate(run.each(Part)):
        found += _PARTS[part](run, (run.seed, number))
    return tuple(found)


__all__ = ["Erratum", "Part", "all_errata"]
