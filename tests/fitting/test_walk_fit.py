"""The physics is recovered from a walk within its stated confidence, and the tolerance covers that."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cloakwork.errors import InputError
from cloakwork.fitting import Walk, WalkFit, fit_walk, read_walk, rounded
from cloakwork.fitting.fitted import COVERED, deviations
from cloakwork.fitting.responses import responses_to
from cloakwork.physics import Family, FloorPlan
from cloakwork.site import Site, edited, parse_site
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
        times=np.linspace(-1, 1, spots),
        shares=shares,
        means=readings + NOISE / np.sqrt(READS) * rng.standard_normal(readings.shape),
        counts=np.full(readings.shape, READS),
        noise=NOISE * np.sqrt(rng.chisquare(freedom, readings.shape[1]) / freedom),
        step=np.zeros(readings.shape[1]),
        unsettled=1.0,
    )


def test_the_decomposition_gives_the_matrix_of_the_floor_plan(site: Site, truth: FloorPlan) -> None:
    assert isinstance(site.physics, FloorPlan)
    found = STRENGTH * responses_to(site.physics, np.eye(site.physics.places))(REACH, FOOTPRINT)
    np.testing.assert_allclose(found.T, truth.matrix, rtol=1e-9, atol=1e-12)


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


def written(fit: WalkFit, text: str) -> Site:
    """The site file with the fitted values, as `cloakwork calibrate` writes it."""
    tolerance = fit.tolerance
    changes: dict[tuple[str | int, ...], float] = {
        ("physics", "reach"): rounded(fit.reach.value),
        ("physics", "footprint"): rounded(fit.footprint.value),
        ("physics", "tolerance", "diffusion"): tolerance.diffusion,
        ("physics", "tolerance", "gain"): tolerance.gain,
    }
    if isinstance(fit.site.spec.sources.strength, float):
        changes["sources", "strength"] = rounded(fit.strength.value)
    return parse_site(edited(text, changes))


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        (STATED, NOISE),
        (STATED + 'scope = "sensor"\n', 0.3),
        (STATED + 'design = "least-error"\n', NOISE),
        (STATED.replace("strength = 3.0 ", "strength = [1.0, 6.0] "), 0.3),
    ],
    ids=["network", "sensor", "least error", "range of strengths"],
)
def test_the_noise_of_the_written_site_covers_the_confidence_region(text: str, noise: float, tmp_path: Path) -> None:
    site = parse_site(text)
    readings = true_readings(true_plan(site, REACH, STRENGTH, FOOTPRINT), np.ones(12), np.full(12, 20.0), EVERYWHERE)
    fit = fit_walk(site, read_walk(site, *write_walk(tmp_path, site, readings, EVERYWHERE, noise=noise)))
    new = written(fit, text)
    cloak = new.cloak()
    errors = deviations(COVERED, 14, fit.walk.freedom) * fit.gain_errors
    tops = (fit.gains + errors) * max(fit.strength.value, new.spec.sources.strongest)
    for reach in (fit.reach.min, fit.reach.value, fit.reach.max):
        for footprint in (fit.footprint.min, fit.footprint.value, fit.footprint.max):
            family = Family(true_plan(new, reach, 1.0, footprint), timing=new.timing)
            allowance = replace(cloak.allowance, family=family)
            assert allowance.cost(cloak.sigmas / tops, cloak.roundings / tops) <= cloak.frame_mu


def test_a_reach_that_no_tolerance_can_cover_is_refused(site: Site, truth: FloorPlan) -> None:
    fit = fitted(site, truth)
    with pytest.raises(InputError) as refusal:
        _ = replace(fit, reach=replace(fit.reach, max=1.5 * fit.reach.value)).tolerance
    assert "reach" in refusal.value.values


def test_baselines_that_drift_over_the_walk_are_taken_out_where_the_site_states_drift(
    site: Site, truth: FloorPlan, tmp_path: Path
) -> None:
    readings = true_readings(truth, np.ones(12), np.full(12, 20.0), EVERYWHERE)
    warmer = np.linspace(-0.2, 0.2, len(EVERYWHERE))[:, None] * np.linspace(0.5, 1.5, 12)
    files = write_walk(tmp_path, site, readings + warmer, EVERYWHERE)
    plain = fit_walk(site, read_walk(site, *files))
    assert plain.wrong
    assert plain.drifts
    stated = parse_site(STATED + "[drift]\nall = 1.0\n")
    fit = fit_walk(stated, read_walk(stated, *files))
    assert not fit.wrong
    assert not fit.drifts
    assert fit.gain_errors.max() < 0.5 * plain.gain_errors.max()
    assert fit.reach.low < REACH < fit.reach.high
    assert abs(fit.strength.value / STRENGTH - 1) < 0.02
    assert (abs(fit.baselines - 20.0) < 4 * fit.baseline_errors).all()


def test_a_sensor_that_is_elsewhere_is_named_with_a_better_place(site: Site, truth: FloorPlan) -> None:
    positions = [(float(x), float(y)) for x, y in truth.sensor_positions]
    moved = replace(truth, sensors_at=[(4.25, 2.75), *positions[1:]])
    fit = fit_walk(site, walked(site, true_readings(moved, np.ones(12), np.full(12, 20.0), EVERYWHERE), 0))
    assert fit.wrong
    assert fit.bad_sensors()[0] == "s01"
    near = replace(truth, sensors_at=[(1.75, 0.75), *positions[1:]])
    fit = fit_walk(site, walked(site, true_readings(near, np.ones(12), np.full(12, 20.0), EVERYWHERE), 0))
    assert fit.misplaced() == {"s01": (1.75, 0.75)}


def test_sensors_that_are_where_they_should_be_are_not_called_misplaced_or_swapped(
    site: Site, truth: FloorPlan
) -> None:
    for seed in range(10):
        fit = fitted(site, truth, seed)
        assert (fit.misplaced(), fit.swapped()) == ({}, [])


@pytest.mark.parametrize("pair", [(0, 11), (4, 6), (2, 3)])
def test_swapped_sensors_are_named(site: Site, truth: FloorPlan, pair: tuple[int, int]) -> None:
    order = np.arange(12)
    order[list(pair)] = pair[::-1]
    readings = true_readings(truth, np.ones(12), np.full(12, 20.0), EVERYWHERE)[:, order]
    fit = fit_walk(site, walked(site, readings, 0))
    assert fit.swapped() == [(site.sensor_ids[pair[0]], site.sensor_ids[pair[1]])]


def test_the_error_of_the_map_is_how_far_readings_stray_beyond_their_noise(site: Site, truth: FloorPlan) -> None:
    rng, readings = np.random.default_rng(3), true_readings(truth, np.ones(12), np.full(12, 20.0), EVERYWHERE)
    assert fit_walk(site, walked(site, readings, 0)).map_errors.max() < NOISE / 2
    strayed = readings + np.linspace(0.0, 0.4, 12) * rng.standard_normal(readings.shape)
    errors = fit_walk(site, walked(site, strayed, 0)).map_errors
    assert errors[6:] == pytest.approx(np.linspace(0.0, 0.4, 12)[6:], rel=0.5)
    assert errors[:4].mean() < errors[4:8].mean() < errors[8:].mean()


def test_a_room_with_a_shut_door_is_named(site: Site, truth: FloorPlan) -> None:
    shut = truth.with_doors_shut([0])
    fit = fit_walk(site, walked(site, true_readings(shut, np.ones(12), np.full(12, 20.0), EVERYWHERE), 0))
    assert fit.wrong
    assert fit.bad_rooms()
