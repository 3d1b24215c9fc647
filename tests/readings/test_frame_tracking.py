"""Following sources through frames: readings as the tracker takes them, late frames, settled moments."""

from functools import cache

import numpy as np
import pytest

from cloakwork.errors import SiteError
from cloakwork.physics import floorplan
from cloakwork.privacy import Cloak
from cloakwork.readings import Frame, FrameTracker, settled_frames, smoothed_frames
from cloakwork.recovery import Tracker
from cloakwork.site import Site, parse_site

SITE = """name = "corridor"
sensors = 12
baseline = 20.0
[physics]
kind = "line"
places = 30
T = 0.005
[sources]
kind = "pulse"
max_count = 2
[privacy]
epsilon = 12.0
delta = 1e-3
alpha = 0.01
"""
FLOOR = """name = "floor"
sensors = 16
[physics]
kind = "floorplan"
cell = 0.5
size = [4.0, 4.0]
regime = "steady"
reach = 1.0
[sources]
kind = "lasting"
max_count = 20
[privacy]
epsilon = 40.0
delta = 1e-2
alpha = 0.02
design = "equal"
"""
MINUTE = 60_000
START = 1_700_000_000_000


@cache
def site() -> Site:
    return parse_site(SITE)


@cache
def cloak() -> Cloak:
    return site().cloak()


def frames(number: int, at: int = 10, missing: tuple[int, ...] = ()) -> list[Frame]:
    """Frames a minute apart of one source that stays."""
    rng = np.random.default_rng(3)
    truth = site().physics.matrix[:, at] + site().baselines
    present = ~np.isin(np.arange(12), missing)
    steps = [np.rint(cloak().simulate(truth, rng=rng) / cloak().steps).astype(np.int64) for _ in range(number)]
    return [Frame(START + MINUTE * k, np.where(present, row, 0), present) for k, row in enumerate(steps)]


def test_frames_are_followed_like_readings_less_the_baseline_with_nan_for_missing_sensors() -> None:
    follower, plain = (
        FrameTracker(site(), cloak(), seed=5),
        Tracker(cloak(), motion=site().motion, max_sources=2, seed=5, chains=site().chains),
    )
    for frame in frames(4, missing=(2, 7)):
        found = follower.step(frame)
        readings = np.where(frame.present, frame.steps * cloak().steps - 20.0, np.nan)
        expected = plain.step(readings, frame.time / 1000)
        assert (found.time, found.sensors, found.settled) == (frame.time, 10, False)
        assert found.shown.tolist() == expected.intensity.tolist()
        assert [track.label for track in found.tracks] == [track.label for track in expected.tracks]
        assert found.labels == expected.labels
    assert [source.place for source in found.sources] == [10]
    assert found.labels == (1,)


def test_a_late_frame_is_worked_in_and_one_too_late_is_recovered_alone() -> None:
    ordered = frames(10)
    order = [0, 1, 3, 2, 4, 5, 6, 7, 8, 9]
    follower = FrameTracker(site(), cloak())
    found = [follower.step(ordered[k]) for k in order]
    assert [one.time for one in found] == [ordered[k].time for k in order]
    assert found[3].tracked is None, "what is known of its own moment comes from itself, until it is settled"
    assert found[4].labels == found[2].labels == (1,)
    again = follower.step(Frame(ordered[1].time + 1, ordered[1].steps, ordered[1].present))
    assert (again.tracked, again.tracks, again.settled) == (None, (), False)
    assert follower.step(ordered[9]).labels == (1,), "a frame that comes again replaces the first"


def test_moments_settle_in_order_with_the_frames_after_them() -> None:
    follower = FrameTracker(site(), cloak(), lag=3)
    ordered = [*frames(6), *(Frame(f.time + 6 * MINUTE, f.steps, f.present) for f in frames(4, missing=(1,)))]
    settled = []
    for k, frame in enumerate(ordered):
        follower.step(frame)
        assert [one.time for one in follower.settled] == [START + MINUTE * (k - 3)] * (k >= 3)
        settled += follower.settled
    assert all(one.settled and one.labels == (1,) for one in settled)
    assert [one.sensors for one in settled] == [12] * 6 + [11]


def test_a_frame_without_any_sensor_says_nothing_new() -> None:
    follower = FrameTracker(site(), cloak())
    for frame in frames(4):
        before = follower.step(frame)
    after = follower.step(Frame(START + 4 * MINUTE, np.zeros(12, np.int64), np.zeros(12, bool)))
    assert after.sensors == 0
    assert after.labels == before.labels


def test_a_site_that_is_not_followed_has_no_tracker() -> None:
    crowd = parse_site(SITE.replace("max_count = 2", "max_count = 40"))
    with pytest.raises(SiteError) as caught:
        FrameTracker(crowd, crowd.cloak())
    assert caught.value.values["site"] == "corridor"


def test_sources_of_unknown_strength_are_followed() -> None:
    unknown = parse_site(SITE.replace("max_count = 2", "max_count = 2\nstrength = [0.4, 1.0]"))
    assert unknown.follows
    follower = FrameTracker(unknown, unknown.cloak())
    for frame in frames(4):
        now = follower.step(frame)
    assert now.labels
    assert all(0 < source.weight <= 1 for source in now.sources)


def test_people_on_a_large_floor_are_followed_and_no_moment_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floorplan, "MAX_DENSE", 0)
    floor = parse_site(FLOOR)
    noise = floor.cloak()
    truth, rng = floor.physics.apply(np.eye(floor.physics.places)[10]), np.random.default_rng(1)
    steps = [np.rint(noise.simulate(truth, rng=rng) / noise.steps).astype(np.int64) for _ in range(5)]
    given = [Frame(START + 10_000 * k, row, np.ones(len(row), dtype=bool)) for k, row in enumerate(steps)]
    found = list(settled_frames(iter(given), floor, noise, lag=3))
    assert [one.time for one in found] == [frame.time for frame in given]
    assert found[-1].labels == found[1].labels == (1,)
    assert not any(one.settled for one in found)
    follower = FrameTracker(floor, noise, lag=3)
    for frame in given:
        follower.step(frame)
    assert follower.step(given[1]).tracked is None, "a frame that comes late is recovered alone"
    with pytest.raises(SiteError, match="later frames"):
        smoothed_frames(given, floor, noise)
