"""Audits of flipped bits: our auditor as the oracle of `cw.Flip` and the claim of one report."""

import numpy as np
import pytest

import cloakwork as cw
from cloakwork.auditing import Verdict, bit_claim
from cloakwork.auditing.testers import Mechanism
from cloakwork.errors import InputError
from cloakwork.site import BitSite, freeze_bits, parse_any_site
from tests.device.test_bits import SITE


def reports(flip: cw.Flip, readings: int) -> Mechanism:
    """Windows of a sensor that sees 0 all the time, or 1 all the time."""
    return lambda database, size, rng: flip.simulate(np.full((size, readings), database), rng=rng)


@pytest.mark.parametrize(("share", "verdict"), [(1.0, Verdict.NONE_FOUND), (0.6, Verdict.VIOLATION)])
def test_an_audit_finds_a_window_of_flips_at_its_claim_and_not_below(share: float, verdict: Verdict) -> None:
    flip = cw.Flip(epsilon=2.0, delta=0.01, readings_per_window=4)
    result = cw.audit(reports(flip, 4), epsilon=2.0 * share, delta=0.01, reports=10_000, rng=np.random.default_rng(4))
    assert result.verdict is verdict
    one = cw.audit(reports(flip, 1), epsilon=flip.each * share, reports=10_000, rng=np.random.default_rng(5))
    assert one.verdict is verdict


def test_the_claim_of_one_report_is_that_of_the_planned_words() -> None:
    site = parse_any_site(SITE)
    assert isinstance(site, BitSite)
    plan = freeze_bits(site)
    claim = bit_claim(plan, "door")
    assert claim.epsilon == pytest.approx(site.flip.each, rel=1e-6)
    assert claim.delta == 0
    assert bit_claim(plan, "door", epsilon=0.0).delta == pytest.approx(2 * claim.truth - 1, rel=1e-6)
    assert claim.reports_needed(2.0) < claim.reports_needed(1.5) < 1e6
    with pytest.raises(InputError):
        bit_claim(plan, "door", shift=1.0)
    with pytest.raises(InputError):
        bit_claim(plan, "s1")
