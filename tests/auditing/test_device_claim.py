"""What one report of a sensor promises, and what two recordings show of a wrong set-up and of missing noise."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from cloakwork.auditing import Audit, DeviceClaim, Subject, audit, device_claim
from cloakwork.errors import InputError
from cloakwork.site import BitSite, Plan, Site, freeze_bits, parse_any_site
from tests.auditing.conftest import CLAIM
from tests.device.test_bits import SITE as BITS


@pytest.fixture(scope="session")
def quiet() -> Audit:
    return audit(lambda _d, n, _r: np.zeros(n), epsilon=1.0, reports=2_000, rng=np.random.default_rng(1))


@pytest.fixture
def seen(quiet: Audit) -> Any:
    def subject(*, apart: float, scatter: float = 2.0, claim: DeviceClaim = CLAIM, **changes: Any) -> Subject:
        """The subject where recordings are exactly `apart` and scatter exactly so much, but for rounding."""
        noise = np.random.default_rng(3).normal(size=2_000)
        noise = scatter * (noise - noise.mean()) / noise.std()
        first, second = (np.rint((noise + at) / claim.step).astype(np.int64) for at in (20.0, 20.0 + apart))
        return claim.subject(replace(quiet, **changes), (first, second))

    return subject


def test_set_ups_that_are_too_far_apart_are_suspected_from_two_standard_errors_on(seen: Any) -> None:
    error = math.hypot(2.0, 0.5 / math.sqrt(12)) * math.sqrt(2 / 2000)
    assert seen(apart=4.5 + 1.5 * error).doubt == ""
    assert "Check the set-ups" in seen(apart=4.5 + 2.5 * error).doubt
    assert "more than stated" in seen(apart=4.5 + 4 * error).cautions[0]


def test_missing_noise_is_named_only_where_the_scatter_is_too_small(seen: Any) -> None:
    for scatter, missing in ((1.0, True), (1.8, True), (1.95, False), (2.0, False), (6.0, False)):
        assert any("noise is missing" in note for note in seen(apart=4.0, scatter=scatter).notes) is missing
    # no distance between the set-ups makes readings scatter less
    assert seen(apart=8.0, scatter=1.0).doubt == ""


def test_the_claim_is_the_exact_gaussian_one_at_the_planned_noise(site: Site, plan: Plan) -> None:
    claim, planned = device_claim(site, plan, "s2", shift=1.5), plan.sensor("s2")
    mu = (1.5 + planned.step) / planned.sigma
    assert claim.epsilon == pytest.approx(mu / 2, rel=1e-5)
    exact = norm.cdf(mu / 2 - 0.5) - math.exp(mu / 2) * norm.cdf(-mu / 2 - 0.5)
    assert exact <= claim.delta == pytest.approx(exact, rel=1e-4)
    other = device_claim(site, plan, "s2", shift=1.5, epsilon=1.0)
    assert (other.epsilon, other.delta < claim.delta) == (1.0, True)


def test_without_a_shift_it_is_what_a_hidden_move_can_do_to_this_sensor(site: Site, plan: Plan) -> None:
    matrix = site.physics.matrix
    for row, name in enumerate(site.sensor_ids):
        claim = device_claim(site, plan, name)
        moved = np.abs(np.diff(matrix[row])).max() / np.diff(site.physics.space.places[:, 0])[0] * 0.05
        assert moved <= claim.shift <= 1.001 * moved, "a bound over all later times, within 0.1 %"


def test_a_shift_that_no_noise_hides_is_refused(site: Site, plan: Plan) -> None:
    with pytest.raises(InputError, match="standard deviations"):
        device_claim(site, plan, "s2", shift=1e6)
    with pytest.raises(InputError, match="shift"):
        device_claim(site, plan, "s2", shift=-1.0)
    with pytest.raises(InputError, match="no sensor 's99'"):
        device_claim(site, plan, "s99")


def test_the_claim_of_a_binary_sensor_is_that_of_the_planned_words(quiet: Audit) -> None:
    site = parse_any_site(BITS)
    assert isinstance(site, BitSite)
    plan = freeze_bits(site)
    claim = device_claim(site, plan, "door")
    assert claim.epsilon == pytest.approx(site.flip.epsilon_per_reading, rel=1e-6)
    assert claim.delta == 0
    assert device_claim(site, plan, "door", epsilon=0.0).delta == pytest.approx(2 * claim.truth - 1, rel=1e-6)
    assert claim.reports_needed(0.5) < claim.reports_needed(2 / 3) < 1e6
    with pytest.raises(InputError, match="leave out the shift"):
        device_claim(site, plan, "door", shift=1.0)
    same = np.arange(2_000) % 2
    assert "50 % and 50 %" in claim.subject(quiet, (same, same)).notes[0]
