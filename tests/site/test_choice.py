"""The estimator follows from what a site says about its sources."""

import pytest

from cloakwork.recovery import BasisPursuit, Estimator, PointSources
from cloakwork.site import parse_site

SITE = """name = "pipe"
sensors = 10
[physics]
kind = "line"
places = 20
T = 0.01
[sources]
kind = "pulse"
{sources}
[privacy]
epsilon = 4.0
delta = 1e-5
alpha = 0.05
"""


@pytest.mark.parametrize(
    ("said", "chosen", "reason"),
    [
        ("", PointSources(1.0), "each of up to 4 sources has the strength 1"),
        (
            "strength = 5.0\nmax_count = 2",
            PointSources(1.0, max_sources=2),
            "each of up to 2 sources has the strength 5",
        ),
        ("strength = [1.0, 4.0]", PointSources((0.25, 1.0)), "a strength of its own from 1 to 4"),
        ("max_count = 40", BasisPursuit(), "40 sources are too many to compare"),
    ],
)
def test_the_estimator_suits_the_stated_strengths(said: str, chosen: Estimator, reason: str) -> None:
    choice = parse_site(SITE.format(sources=said)).estimator()
    assert choice.estimator == chosen
    assert reason in choice.reason
