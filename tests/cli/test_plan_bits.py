"""What `plan` prints for a site of bits, against the exact delta of every pair of neighbours."""

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cloakwork.errors import SiteError
from cloakwork.site import BitPlan, load_any_plan, parse_any_site
from tests.cli.conftest import Run

SITE = """name = "office"
[bits]
epsilon = 2.0
delta = 1e-3
window = "10min"
readings_per_window = 3
[[zone]]
id = "hall"
[[zone]]
id = "study"
[[zone]]
id = "kitchen"
[[sensor]]
id = "hall-1"
zone = "hall"
[[sensor]]
id = "hall-2"
zone = "hall"
[[sensor]]
id = "desk"
zone = "study"
[[sensor]]
id = "sink"
zone = "kitchen"
"""
# away, or in a zone
PLACES: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({"hall-1", "hall-2"}),
    frozenset({"desk"}),
    frozenset({"sink"}),
)


def exact_delta(changed: int, epsilon: float, other: Fraction) -> Fraction:
    """The delta at epsilon of two histories that differ in so many bits, each flipped with this probability."""
    factor = Fraction(math.exp(epsilon)) * (1 - Fraction(1, 10**12))  # never above e^epsilon
    total = Fraction(0)
    for flips in range(changed + 1):
        here = (1 - other) ** (changed - flips) * other**flips
        there = (1 - other) ** flips * other ** (changed - flips)
        total += math.comb(changed, flips) * max(Fraction(0), here - factor * there)
    return total


@pytest.fixture
def printed(succeed: Run, tmp_path: Path) -> tuple[dict[str, Any], BitPlan]:
    """What `plan --json` prints, and the plan that it writes."""
    path = tmp_path / "office.toml"
    path.write_text(SITE)
    values = succeed("plan", "--no-simulation", path, "--out", tmp_path / "office.plan.json", "--json").values
    plan = load_any_plan(tmp_path / "office.plan.json")
    assert isinstance(plan, BitPlan)
    return values, plan


def test_no_pair_of_histories_of_one_person_exceeds_the_printed_claim(
    printed: tuple[dict[str, Any], BitPlan],
) -> None:
    """A person is away, or in any zone, in each slot: moving through a doorway changes the bits of both zones."""
    values, plan = printed
    other = Fraction(int(plan.words, 16), 1 << 127)
    histories = list(itertools.product(PLACES, repeat=3))
    changed = {sum(len(a ^ b) for a, b in zip(one, two, strict=True)) for one in histories for two in histories}
    worst = max(exact_delta(number, values["epsilon"], other) for number in changed)
    assert worst <= Fraction(values["delta"])
    assert float(worst) == pytest.approx(values["delta"], rel=1e-3), "no more noise than the claim needs"
    assert values["truth"] == pytest.approx(float(1 - other))


def test_longer_times_reveal_no_more_than_is_printed(printed: tuple[dict[str, Any], BitPlan]) -> None:
    values, plan = printed
    other = Fraction(int(plan.words, 16), 1 << 127)
    for span in values["over_time"][:2]:
        changed = span["readings"] * plan.claim.shared
        assert exact_delta(changed, span["epsilon"], other) <= Fraction(plan.claim.delta) * (1 + Fraction(1, 10**9))
        assert exact_delta(changed, 0.99 * span["epsilon"], other) > Fraction(plan.claim.delta)


def test_a_claim_for_fewer_sensors_than_two_zones_have_is_refused() -> None:
    with pytest.raises(SiteError, match="up to 3 sensors"):
        parse_any_site(SITE.replace("[bits]", "[bits]\nshared = 2"))
