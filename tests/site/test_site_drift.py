"""`[drift]` and `[[heat]]`: what they mean, what is refused, and that noise designed for them keeps the claim."""

import numpy as np
import pytest

from cloakwork.physics import Drift, Heat, HeatLine, whitener
from cloakwork.privacy import Cloak
from cloakwork.readings import Frame, FrameRecoverer, FrameTracker
from cloakwork.recovery import Tracker
from cloakwork.site import (
    Site,
    cost_of_drift,
    freeze,
    parse_site,
    plan_advice,
    share_detected,
    window_limits,
)

WALLS = """
name = "two-rooms"
sensors = 8
baseline = 20.0
sources = {kind = "lasting", strength = 5.0, max_count = 1}
privacy = {epsilon = 4.0, delta = 1e-5, alpha = 0.1, window = "10min", readings_per_window = 10}
[physics]
kind = "floorplan"
cell = 0.5
size = [4.0, 2.0]
walls = [[[2.0, 0.0], [2.0, 2.0]]]
doors = [[[2.0, 0.5], [2.0, 1.5]]]
regime = "steady"
reach = 0.8
"""
DRIFT = """
[drift]
sensor = 0.1
room = 0.5
all = 2.0
over = "6h"
[[heat]]
at = [3.9, 0.1]
strength = 20.0
"""
LINE = """
name = "pipe"
sensors = 4
physics = {kind = "line", places = 20, T = 0.01}
sources = {kind = "pulse"}
privacy = {epsilon = 2.0, delta = 1e-5, alpha = 0.1}
"""


def test_the_error_of_the_map_changes_neither_the_noise_nor_the_plan_and_recovery_allows_for_it() -> None:
    tables = "".join(f'[[sensor]]\nid = "s{k}"\nat = [{k / 2 + 0.25}, 1.0]\n' for k in range(8))
    known = parse_site(WALLS.replace("sensors = 8\n", "") + tables)
    wrong = parse_site(WALLS.replace("sensors = 8\n", "") + tables + "map_error = 3.0\n")
    assert wrong.digest == known.digest
    cloak, plain = wrong.cloak(), known.cloak()
    assert np.array_equal(cloak.sigmas, plain.sigmas)
    assert cloak.total_sigmas == pytest.approx(np.hypot(plain.total_sigmas, [0.0] * 7 + [3.0]))
    assert wrong.cloak_with(plain.sigmas, plain.steps).total_sigmas == pytest.approx(cloak.total_sigmas)
    tracker = FrameTracker(wrong, cloak).tracker
    assert isinstance(tracker, Tracker)
    assert tracker.problem.sigma == pytest.approx(cloak.total_sigmas)


def test_a_site_states_its_drift_in_units_of_its_strongest_source() -> None:
    site = parse_site(WALLS + DRIFT)
    assert site.drift == Drift(sensor=0.1, room=0.5, all=2.0, over=21600.0, heat=[Heat((3.9, 0.1), 4.0, 7200.0)])
    assert parse_site(WALLS).drift is None
    assert site.digest == parse_site(WALLS).digest


def frames_of(site: Site, cloak: Cloak, number: int, offset: float) -> list[Frame]:
    rng, person = np.random.default_rng(0), site.physics.matrix[:, 3]
    values = 20.0 + offset + person + cloak.sigmas * rng.standard_normal((number, 8))
    steps = np.rint(values / cloak.steps).astype(np.int64)
    return [Frame(60_000 * (k + 1), row, np.arange(8) != 5) for k, row in enumerate(steps)]


def test_frames_and_tracks_of_a_site_take_its_offsets_into_account() -> None:
    doubtful, swing = {}, WALLS + DRIFT.replace("all = 2.0", "all = 30.0")
    for text in (WALLS, swing):
        site = parse_site(text)
        cloak = site.cloak()
        frames = frames_of(site, cloak, 3, -40.0)
        alone, tracker = FrameRecoverer(site, cloak).recover(frames), FrameTracker(site, cloak)
        live = [tracker.step(frame) for frame in frames]
        doubtful[text] = [found.fit.p_value < 0.005 for found in (*alone, *live)]
    assert all(doubtful[WALLS])
    assert not any(doubtful[swing])


def test_the_plan_states_what_drift_costs() -> None:
    site = parse_site(WALLS + DRIFT)
    cloak = site.cloak()
    cost, bounds = cost_of_drift(site, cloak), window_limits(cloak)
    assert bounds is not None
    assert cost.noticed < share_detected(cloak)
    assert cost.average_emd is not None
    assert cost.average_emd > bounds.average_emd
    fast = parse_site(WALLS + DRIFT.replace('"6h"', '"20s"'))
    [warned] = set(plan_advice(fast, cloak)) - set(plan_advice(site, cloak))
    assert warned.key == ("drift", "over")


def test_the_noise_knows_the_drift_and_a_plan_outlives_its_change() -> None:
    site, calm = parse_site(WALLS + DRIFT), parse_site(WALLS)
    knowing, plain = site.cloak(), calm.cloak()
    assert not np.array_equal(knowing.sigmas, plain.sigmas)
    assert knowing.design_report.variance <= freeze(calm, plain).cloak(site).design_report.variance * (1 + 1e-3)
    assert knowing.frame_mu <= knowing.allowance.mu == plain.allowance.mu
    kept = freeze(site, knowing).cloak(calm)  # as after the drift was taken out of the site file
    np.testing.assert_allclose(kept.sigmas, knowing.sigmas, rtol=1e-6)


def test_simulated_offsets_have_the_stated_covariance() -> None:
    line = HeatLine(n=10, m=3, T=0.05)
    offsets = Drift(sensor=0.5, all=1.0, over=100.0).on(line)
    drawn = offsets.simulate(50.0 * np.arange(40_000), np.random.default_rng(0))
    expected = 0.25 * np.eye(3) + 1.0
    np.testing.assert_allclose(np.cov(drawn.T), expected, atol=0.06)
    later = (drawn[1:].T @ drawn[:-1]) / len(drawn[1:])
    np.testing.assert_allclose(later, np.exp(-0.5) * expected, atol=0.06)
    whitened = drawn + np.random.default_rng(1).standard_normal(drawn.shape)
    np.testing.assert_allclose(np.cov(whitener(np.ones(3), offsets.factor) @ whitened.T), np.eye(3), atol=0.05)
