"""Which claim is still useful: simulated people, followed at many settings."""

from dataclasses import replace

import numpy as np
import pytest

import cloakwork as cw
from cloakwork.errors import InputError
from cloakwork.site import Estimate, Followed, Quality, Setting, TradeoffRow, parse_site
from cloakwork.site.tracking_quality import Guess, ZoneNumbers

SITE = """
name = "two-rooms"
sensors = 12
physics = {kind = "floorplan", cell = 0.5, drawing = '''
#########
#...#...#
#...+...#
#...#...#
#########''', regime = "steady", reach = 1.0, footprint = 0.5}
sources = {kind = "lasting", strength = 5.0, max_count = 2}
privacy = {epsilon = 8.0, delta = 1e-5, alpha = 0.05, window = "4min", readings_per_window = 4}
"""


@pytest.fixture(scope="module")
def found() -> cw.Tradeoff:
    return cw.tradeoff(parse_site(SITE), epsilon=[8.0, 0.001], frames=60)


def by_claim(found: cw.Tradeoff, alpha: float, epsilon: float) -> TradeoffRow:
    return next(row for row in found.rows if (row.setting.alpha, row.setting.epsilon) == (alpha, epsilon))


def test_a_weak_claim_finds_the_room_and_an_absurd_one_is_called_useless(found: cw.Tradeoff) -> None:
    weak, absurd = by_claim(found, 0.05, 8.0), by_claim(found, 0.05, 0.001)
    assert weak.followed.settled.room.value > 0.97
    assert weak.followed.settled.count.value > 0.9
    assert weak.followed.settled.spot.value < 0.5
    assert not weak.useless
    assert found.warning(weak) == ""
    assert found.recommend("room 90%") is weak
    assert absurd.useless
    assert absurd.followed.guess.where in found.warning(absurd)
    assert [row.strength for row in found.rows] == sorted((row.strength for row in found.rows), reverse=True)


def test_twice_the_alpha_at_twice_the_mu_is_the_same_noise_to_the_cost_of_rounding() -> None:
    site = parse_site(SITE)
    epsilon = cw.Profile(2 * site.cloak().profile.mu).epsilon(1e-5)
    seen: list[tuple[int, int]] = []
    both = cw.tradeoff(
        site, alpha=[0.05, 0.1], epsilon=[8.0, epsilon], frames=24, progress=lambda *done: seen.append(done)
    )
    same = by_claim(both, 0.05, 8.0), by_claim(both, 0.1, epsilon)
    assert same[0].sigmas == pytest.approx(same[1].sigmas, rel=0.05)
    assert seen == [(k, 4) for k in range(5)]


def test_sensors_that_a_site_lists_keep_their_number() -> None:
    listed = SITE.replace("sensors = 12\n", "") + '[[sensor]]\nid = "a"\nat = [1.0, 1.0]\n'
    with pytest.raises(InputError) as caught:
        cw.tradeoff(parse_site(listed), sensors=[2], frames=24)
    assert caught.value.sensors == 2


def test_the_figures_count_rooms_people_and_distances() -> None:
    """One moment by hand: two people in the left room, of whom one is found there and one in the right room."""
    site = parse_site(SITE)
    zones = ZoneNumbers.of(site)
    left, right = (int(zone.places[0]) for zone in site.zones)
    tracker = cw.Tracker(site.physics, sigma=0.5, motion=site.motion, max_sources=2)
    readings = site.physics.matrix[:, [left, right]].sum(axis=1)
    moments = [tracker.step(readings, 60.0 * k) for k in range(6)]
    truth = np.array([[left, left]] * 6)
    quality = zones.quality(moments, truth, site.physics.space.distance_table)
    assert (quality.room.value, quality.rooms.value, quality.count.value) == (0.5, 0.0, 1.0)
    apart = float(site.physics.space.distance_table[left, right])
    assert quality.spot.value == pytest.approx(apart / 2)  # the median of 0 and the way to the other room
    guess = zones.guess(1, cw.Habits())
    assert guess.where == "room 1"
    assert (guess.room, guess.count) == pytest.approx((9 / 19, 4 / 5.75))


def test_a_need_is_met_only_beyond_its_error() -> None:
    sure, unsure = Estimate(0.96, 0.005), Estimate(0.96, 0.02)
    quality = Quality(sure, sure, unsure, Estimate(0.45, 0.04))
    followed = Followed(replace(quality, room=unsure), quality, Guess("living", 0.6, 0.4))
    row = TradeoffRow(Setting(0.1, 2.0, 10, 80, None), 0.5, np.ones(80), followed)
    found = cw.Tradeoff((row,), "room", 600.0, 720)
    assert found.recommend("room 95%", "spot 0.5") is row
    for unmet in ("room 95% live", "count 95%", "spot 0.48", "room 97%"):
        assert found.recommend(unmet) is None


@pytest.mark.parametrize(
    "text", ["", "room", "room 0%", "rooms 101%", "spot 50%", "count 0.5m", "kitchen 90%", "room 95% late"]
)
def test_a_need_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        cw.Need.parse(text)
    assert caught.value.need == text
