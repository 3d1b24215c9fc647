"""Which estimator suits what a site says about its sources."""

from dataclasses import dataclass

from cloakwork.physics import Metric, Space
from cloakwork.recovery import BasisPursuit, Estimator, PointSources
from cloakwork.recovery.lattice import MOST_PLACES
from cloakwork.recovery.point_sources import MOST_COUNT
from cloakwork.site.schema import SourcesSpec

USUAL_COUNT = 4


@dataclass(frozen=True)
class Choice:
    """An estimator, and why it suits."""

    estimator: Estimator
    reason: str


def choose_estimator(sources: SourcesSpec, space: Space) -> Choice:
    """Point sources of the stated strengths, or the smallest total that fits where there are too many of them."""
    most = sources.max_count or USUAL_COUNT
    if most > MOST_COUNT:
        return Choice(BasisPursuit(), f"{most} sources are too many to compare where each might be")
    if space.metric is Metric.PATH and len(space) > MOST_PLACES:
        return Choice(BasisPursuit(), f"{len(space):,} places are too many to compare where each source might be")
    if isinstance(sources.strength, tuple):
        low, high = sources.strength
        said = f"each of up to {most} sources has a strength of its own from {low:g} to {high:g}"
        return Choice(PointSources((low / high, 1.0), most=most), said)
    if sources.alike:
        said = f"all of up to {most} sources have one strength, not known but at most {sources.strength:g}"
        return Choice(PointSources(None, most=most), said)
    return Choice(PointSources(1.0, most=most), f"each of up to {most} sources has the strength {sources.strength:g}")
