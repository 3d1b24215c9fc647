"""What one reading of a sensor promises, and what two recordings show of a wrong set-up and of missing noise."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from cloakwork.auditing import BenchClaim, SetupComparison, Verdict, audit, bench_claim, compare
from cloakwork.errors import InputError
from cloakwork.site import Plan, Site
from tests.auditing.conftest import CLAIM


def seen(*, apart: float, scatter: float = 2.0, size: int = 2000, claim: BenchClaim = CLAIM) -> SetupComparison:
    """Recordings that are exactly so far apart, and scatter exactly by so much, but for rounding."""
    noise = np.random.default_rng(3).normal(size=size)
    noise = scatter * (noise - noise.mean()) / noise.std()
    first, second = (np.rint((noise + at) / claim.step).astype(np.int64) for at in (20.0, 20.0 + apart))
    return compare(claim, (first, second))


def test_means_scatter_and_their_errors_are_those_of_the_readings() -> None:
    found = seen(apart=4.0)
    assert found.apart == pytest.approx(4.0, abs=0.02)
    assert found.scatter == pytest.approx(np.hypot(2.0, 0.5 / np.sqrt(12)), abs=0.02)
    assert found.error == pytest.approx(found.scatter * np.sqrt(2 / 2000))
    rng = np.random.default_rng(4)
    many = [compare(CLAIM, (rng.integers(0, 9, 500), rng.integers(3, 12, 500))) for _ in range(400)]
    assert np.std([one.apart for one in many]) == pytest.approx(many[0].error, rel=0.15)


def test_set_ups_as_stated_leave_nothing_to_say() -> None:
    found = seen(apart=4.0)
    assert len(found.notes()) == 1
    assert all(value in found.notes()[0] for value in ("4 °C ± 0.063 °C", "4.5 °C", "2 °C"))
    assert (found.doubt(), found.cautions(Verdict.NONE_FOUND, reports=2000, confidence=0.95)) == ("", ())


def test_set_ups_that_are_too_far_apart_are_suspected_from_two_standard_errors_on() -> None:
    error = seen(apart=4.5).error
    assert seen(apart=4.5 + 1.5 * error).doubt() == ""
    assert seen(apart=4.5 + 2.5 * error).doubt()
    [caution] = seen(apart=4.5 + 4 * error).cautions(Verdict.NONE_FOUND, reports=2000, confidence=0.95)
    assert "more than stated" in caution


def test_missing_noise_is_named_only_where_the_scatter_is_too_small() -> None:
    assert "noise is missing" in seen(apart=4.0, scatter=1.0).notes()[1]
    assert "noise is missing" in seen(apart=4.0, scatter=1.8).notes()[1]
    for scatter in (1.95, 2.0, 6.0):
        assert "noise is missing" not in " ".join(seen(apart=4.0, scatter=scatter).notes())
    # what scatters too little is the device's doing, however far the set-ups are apart
    assert seen(apart=8.0, scatter=1.0).doubt() == ""


def test_set_ups_that_differed_too_little_or_not_at_all_weaken_a_verdict() -> None:
    said = [
        seen(apart=apart, claim=claim).cautions(Verdict.NONE_FOUND, reports=2000, confidence=0.95)
        for apart, claim in ((2.0, CLAIM), (0.1, CLAIM), (0.1, replace(CLAIM, shift=0.2)))
    ]
    assert [len(cautions) for cautions in said] == [1, 1, 1]
    assert all("less than stated" in cautions[0] for cautions in said[:2])
    assert ["if at all" in cautions[0] for cautions in said] == [False, True, False]
    assert "cannot show whether the set-ups differed" in said[2][0]
    assert "The readings cannot show whether the set-ups differed." in seen(apart=0.1).notes()
    assert "nearer to each other" in seen(apart=2.0).notes()[-1]


def test_an_audit_that_could_hardly_have_found_anything_says_so() -> None:
    weak = replace(CLAIM, shift=0.1, mu=0.3, epsilon=0.15, delta=0.06)
    few, many = (
        seen(apart=0.1, claim=weak).cautions(Verdict.NONE_FOUND, reports=reports, confidence=0.95)
        for reports in (300, 10**7)
    )
    assert set(few) - set(many)
    assert "half as large as planned" in few[-1]


@pytest.mark.parametrize("verdict", [Verdict.VIOLATION, Verdict.WITHHELD])
def test_what_weakens_a_search_does_not_weaken_what_was_found(verdict: Verdict) -> None:
    assert seen(apart=0.1).cautions(verdict, reports=300, confidence=0.95) == ()


def test_the_claim_is_the_exact_gaussian_one_at_the_planned_noise(site: Site, plan: Plan) -> None:
    claim = bench_claim(site, plan, "s2", shift=1.5)
    planned = plan.sensor("s2")
    mu = (1.5 + planned.step) / planned.sigma
    assert claim.mu == pytest.approx(mu, rel=1e-5)
    assert claim.epsilon == pytest.approx(mu / 2, rel=1e-5)
    exact = norm.cdf(mu / 2 - 0.5) - math.exp(mu / 2) * norm.cdf(-mu / 2 - 0.5)
    assert claim.delta == pytest.approx(exact, rel=1e-4)
    assert claim.delta >= exact
    other = bench_claim(site, plan, "s2", shift=1.5, epsilon=1.0)
    assert (other.epsilon, other.mu) == (1.0, claim.mu)
    assert other.delta < claim.delta


def test_without_a_shift_it_is_what_a_hidden_move_can_do_to_this_sensor(site: Site, plan: Plan) -> None:
    matrix = site.physics.matrix
    claims = {name: bench_claim(site, plan, name) for name in site.sensor_ids}
    for row, claim in enumerate(claims.values()):
        moved = np.abs(np.diff(matrix[row])).max() / np.diff(site.physics.space.places[:, 0])[0] * 0.05
        assert claim.shift == claim.hidden_shift
        assert moved <= claim.shift <= 1.001 * moved, "a bound over all later times, within 0.1 %"
        # one reading of one sensor costs less than one frame of all of them
        assert claim.mu < plan.mu / math.sqrt(50)


def test_how_many_readings_it_takes_is_about_right(site: Site, plan: Plan) -> None:
    claim = bench_claim(site, plan, "s2", shift=2 * plan.sensor("s2").sigma)
    half, tenth = claim.reports_needed(0.5), claim.reports_needed(0.9)
    assert (half, claim.reports_needed(1.0)) == (300, math.inf)
    assert 1000 < tenth < 5000
    # what it needs is found in fewer, but not announced before the 1,000th reading, or the last one
    assert [claim.reports_taken(0.5, ceiling=ceiling) for ceiling in (400, 2000)] == [400, 1000]
    assert claim.reports_taken(0.9, ceiling=400) == tenth
    assert 2 < bench_claim(site, plan, "s2", shift=plan.sensor("s2").sigma).reports_needed(0.9) / tenth < 5

    def tampered(database: int, size: int, rng: np.random.Generator) -> Any:
        shift = claim.shift / claim.step * database
        return np.rint(shift + rng.normal(0, 0.9 * claim.sigma / claim.step, size)).astype(int)

    used = [
        audit(tampered, epsilon=claim.epsilon, delta=claim.delta, reports=20_000, rng=np.random.default_rng(k))
        for k in range(5)
    ]
    assert all(one.verdict is Verdict.VIOLATION for one in used)
    assert tenth / 5 < np.median([one.reports_used for one in used]) < 3 * tenth


def test_a_shift_that_no_noise_hides_is_refused(site: Site, plan: Plan) -> None:
    with pytest.raises(InputError, match="standard deviations"):
        bench_claim(site, plan, "s2", shift=1e6)
    with pytest.raises(InputError, match="shift"):
        bench_claim(site, plan, "s2", shift=-1.0)
    with pytest.raises(InputError, match="no sensor 's99'"):
        bench_claim(site, plan, "s99")
