"""The physics is recovered from a walk within its stated confidence, and the tolerance covers that."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cloakwork.fitting import Walk, WalkFit, fit_walk, read_walk
from cloakwork.fitting.responses import Responses
from cloakwork.physics import Family, FloorPlan
from cloakwork.site import Site, parse_site
from tests.fitting.walks import SPOTS, STATED, stated, true_plan, true_readings, write_walk

REACH, STRENGTH, FOOTPRINT, NOISE, READS = 1.6, 5.0, 0.5, 0.05, 20
EVERYWHERE = [*SPOTS, None]


@pytest.fixture(scope="module")
def site() -> Site:
    return stated()


@pytest.fixture(scope="module")
def truth(site: Site) -> FloorPlan:
    return true_plan(site, REACH, STRENGTH, FOOTPRINT)


def walked(site: Site, readings: NDArray[np.float64], seed: int) -> Walk:
    """What `read_walk` makes of noisy readings: means of a few, and the noise estimated from them."""
    rng, spots = np.random.default_rng(seed), len(readings)
    freedom = spots * (READS - 1)
    shares = np.zeros((site.physics.places, spots))
    for number, spot in enumerate(EVERYWHERE):
        assert isinstance(site.physics, FloorPlan)
        for cell, share in site.physics.rooms.shares(*spot) if spot else []:
            shares[cell, number] += share
    return Walk(
        at=np.array([spot or (np.nan, np.nan) for spot in EVERYWHERE]),
        shares=shares,
        means=readings + NOISE / np.sqrt(READS) * rng.standard_normal(readings.shape),
        counts=np.full(readings.shape, READS),
        noise=NOISE * np.sqrt(rng.chisquare(freedom, readings.shape[1]) / freedom),
        step=0.0,
        unsettled=1.0,
    )


def test_the_decomposition_gives_the_matrix_of_the_floor_plan(site: Site, truth: FloorPlan) -> None:
    found = STRENGTH * Responses.of_site(site).matrix(REACH, FOOTPRINT)
    np.testing.assert_allclose(found, truth.matrix, rtol=1e-9, atol=1e-12)


def test_intervals_hold_the_truth_as_often_as_they_say(site: Site, truth: FloorPlan) -> None:
    rng = np.random.default_rng(1)
    gains, baselines = 1 + 0.03 * rng.standard_normal(12), 20 + rng.standard_normal(12)
    readings = true_readings(truth, gains, baselines, EVERYWHERE)
    held: dict[str, list[bool]] = {"reach": [], "footprint": [], "strength": [], "gain": [], "baseline": []}
    for seed in range(150):
        fit = fit_walk(site, walked(site, readings, seed))
        strength = STRENGTH * float(np.average(gains, weights=1 / fit.gain_errors**2))
        for name, value in (("reach", REACH), ("footprint", FOOTPRINT), ("strength", strength)):
            interval = getattr(fit, name)
            held[name].append(interval.low <= value <= interval.high)
        found = fit.gains * fit.strength.value - gains * STRENGTH
        held["gain"] += (abs(found) <= 1.645 * fit.gain_errors * fit.strength.value).tolist()
        held["baseline"] += (abs(fit.baselines - baselines) <= 1.645 * fit.baseline_errors).tolist()
    shares = {name: float(np.mean(each)) for name, each in held.items()}
    assert all(0.85 <= share <= 0.95 for share in shares.values()), shares


def fitted(site: Site, truth: FloorPlan, seed: int = 0) -> WalkFit:
    return fit_walk(site, walked(site, true_readings(truth, np.ones(12), np.full(12, 20.0), EVERYWHERE), seed))


def test_the_noise_of_the_written_site_covers_the_confidence_region(site: Site, truth: FloorPlan) -> None:
    fit = fitted(site, truth)
    tolerance = fit.tolerance
    text = STATED.replace("reach = 1.0", f"reach = {fit.reach.value:.4g}")
    text = text.replace("footprint = 0.3", f"footprint = {fit.footprint.value:.4g}")
    text = text.replace("strength = 3.0", f"strength = {fit.strength.value:.4g}")
    text += f"[physics.tolerance]\ndiffusion = {tolerance.diffusion}\ngain = {tolerance.gain}\n"
    written = parse_site(text)
    sigmas = written.cloak().sigmas
    allowed = Family(written.physics, written.tolerance, written.timing).frame_slope(1 / sigmas)
    for reach in (fit.reach.least, fit.reach.most):
        for footprint in (fit.footprint.least, fit.footprint.most):
            for gain in (fit.strength.least, fit.strength.most):
                model = true_plan(site, reach, gain, footprint)
                assert Family(model, timing=written.timing).frame_slope(1 / sigmas) <= allowed


def test_a_model_that_is_right_is_not_called_wrong(site: Site, truth: FloorPlan) -> None:
    assert [fitted(site, truth, seed).wrong for seed in range(10)] == [False] * 10


def test_a_sensor_that_is_elsewhere_is_named_with_a_better_place(site: Site, truth: FloorPlan) -> None:
    positions = [(float(x), float(y)) for x, y in truth.sensor_positions]
    moved = replace(truth, sensors_at=[(4.25, 2.75), *positions[1:]])
    fit = fit_walk(site, walked(site, true_readings(moved, np.ones(12), np.full(12, 20.0), EVERYWHERE), 0))
    assert fit.wrong
    assert fit.bad_sensors()[0] == "s01"
    near = replace(truth, sensors_at=[(1.75, 0.75), *positions[1:]])
    fit = fit_walk(site, walked(site, true_readings(near, np.ones(12), np.full(12, 20.0), EVERYWHERE), 0))
    assert fit.better_place("s01") == (1.75, 0.75)


def test_a_room_with_a_shut_door_is_named(site: Site, truth: FloorPlan) -> None:
    shut = truth.with_doors_shut([0])
    fit = fit_walk(site, walked(site, true_readings(shut, np.ones(12), np.full(12, 20.0), EVERYWHERE), 0))
    assert fit.wrong
    assert fit.misfit > 0.02
    assert fit.bad_rooms()


def test_files_give_the_same_fit_in_both_forms(site: Site, truth: FloorPlan, tmp_path: Path) -> None:
    readings = true_readings(truth, np.ones(12), np.full(12, 20.0), EVERYWHERE)
    spots, raw = write_walk(tmp_path, site, readings, EVERYWHERE)
    fit = fit_walk(site, read_walk(site, spots, raw))
    assert abs(fit.reach.value / REACH - 1) < 0.05
    assert abs(fit.strength.value / STRENGTH - 1) < 0.05
    rows = [line.split(",") for line in spots.read_text(encoding="utf-8").splitlines()[1:]]
    track = tmp_path / "track.csv"
    moments = [f"{time},{x},{y}" for start, end, x, y in rows for time in (start, end)]
    track.write_text("\n".join(["time,x,y", *moments]), encoding="utf-8")
    assert fit_walk(site, read_walk(site, track, raw)).reach == fit.reach
