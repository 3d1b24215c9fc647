"""Zones and tracks over a long time, over HTTP; and what eight hours of readings reveal."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cloakwork.collect.api.site_geometry import longer_window
from cloakwork.collect.collected_site import CollectedBits
from cloakwork.collect.storage import RecoveredTrack, Result
from cloakwork.privacy import Profile
from cloakwork.site import BitSite, freeze_bits, parse_any_site
from tests.collect.api_kit import NOW, watched
from tests.collect.small_sites import FLAT, flat_site
from tests.collect.small_sites import flat_result as zone_result
from tests.collect.test_api_results import client, get
from tests.collect.test_presence_solver import BITS

PERIOD = 60_000


def results() -> list[Result]:
    """Ten minutes: someone walks from one room into the other and back, with a gap of two minutes."""
    one = flat_site()
    made = []
    for k in (0, 1, 2, 5, 6, 7, 8, 9):
        when = NOW - (10 - k) * PERIOD
        tracks = [
            RecoveredTrack(label, NOW - 10 * PERIOD, str(k), (0.5, k / 2), 1.0, 0.3, 0.8, 0.9) for label in (4, 2)
        ]
        made.append(replace(zone_result(one, when, zone=int(2 < k < 7)), tracks=tuple(tracks[: 1 + (k > 5)])))
    return made


def test_a_timeline_has_the_last_result_of_each_step(tmp_path: Path) -> None:
    given = results()
    with client(tmp_path, flat_site(), *given) as (made, _):
        for since, steps in ((NOW - 10 * PERIOD, 10), (NOW - 10 * PERIOD, 3), (NOW - 9 * PERIOD + 7, 1000)):
            told = get(made, f"/timeline?since={since}&until={NOW}&steps={steps}")
            assert (told["since"], told["until"]) == (since, NOW)
            inside = {(one.time - since) // told["step_ms"]: one for one in given if since <= one.time < NOW}
            number = -(-(NOW - since) // told["step_ms"])
            assert number <= steps
            assert told["counts"] == [1 if k in inside else None for k in range(number)]
            for row, zone in enumerate(told["zones"]):
                states = [inside[k].zones for k in range(number) if k in inside]
                assert [p for p in zone["probability"] if p is not None] == [
                    one[row].probability for one in states if one
                ]
                assert [k for k, p in enumerate(zone["occupied"]) if p is not None] == sorted(inside)


def test_left_out_a_timeline_begins_with_the_oldest_result_and_ends_now(tmp_path: Path) -> None:
    with client(tmp_path, flat_site(), *results()) as (made, _):
        told = get(made, "/timeline")
        assert told["since"] == NOW - 10 * PERIOD
        assert told["until"] >= NOW
        assert len(told["counts"]) <= 300
        refused = made.get(f"/v1/sites/flat/timeline?since={NOW}&until={NOW}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid")
    (tmp_path / "empty").mkdir()
    with client(tmp_path / "empty", flat_site()) as (made, _):
        assert get(made, "/timeline")["counts"] == [None]
        assert get(made, "/tracks")["items"] == []


def test_tracks_have_a_point_for_each_step(tmp_path: Path) -> None:
    with client(tmp_path, flat_site(), *results()) as (made, _):
        two, four = get(made, f"/tracks?since={NOW - 10 * PERIOD}&until={NOW}&steps=5")["items"]
        assert (two["label"], four["label"]) == (2, 4)
        assert [point["time"] for point in four["points"]] == [NOW - (10 - k) * PERIOD for k in (1, 2, 5, 7, 9)]
        assert [point["place"] for point in two["points"]] == ["7", "9"]
        assert (two["since"], two["until"]) == (NOW - 10 * PERIOD, NOW - PERIOD)


def test_eight_hours_locate_a_source_that_stays(tmp_path: Path) -> None:
    one = watched()
    longer, claim = longer_window(one), one.plan.claim
    windows = 28_800 / claim.window
    assert longer.seconds == 28_800
    composed = Profile(one.cloak.frame_mu * np.sqrt(claim.readings_per_window * windows)).epsilon(claim.delta)
    assert longer.epsilon == pytest.approx(composed, rel=0.01)
    # along a line, the information about a place is the squared slope of all readings in units of their noise
    steps = np.diff(one.cloak.physics.matrix, axis=1) / np.diff(one.site.physics.space.places, axis=0).T
    information = np.median(((steps.T / one.cloak.sigmas) ** 2).sum(axis=1)) * claim.readings_per_window * windows
    assert longer.radius == pytest.approx(information**-0.5, rel=0.15)


STAY = '[privacy.stay]\nlength = "8h"\nepsilon = 8.0\ndelta = 1e-5\n'


def test_a_site_states_its_claim_for_stays(tmp_path: Path) -> None:
    with client(tmp_path, flat_site(FLAT + STAY)) as (made, _):
        [told] = made.get("/v1/sites").json()
    assert told["stay"] == {"seconds": 28_800.0, "epsilon": 8.0, "delta": 1e-5}
    (tmp_path / "plain").mkdir()
    with client(tmp_path / "plain", flat_site()) as (made, _):
        [plain] = made.get("/v1/sites").json()
    assert plain["stay"] is None


def test_a_site_of_bits_stands_beside_one_of_readings(tmp_path: Path) -> None:
    bits = parse_any_site(BITS)
    assert isinstance(bits, BitSite)
    with client(tmp_path, flat_site(), beside=[CollectedBits(bits, freeze_bits(bits))]) as (made, _):
        flat, office = sorted(made.get("/v1/sites").json(), key=lambda site: str(site["name"]))
        assert (office["kind"], office["alpha"], office["shared"], office["epsilon"]) == ("bits", None, 3, 120.0)
        assert (flat["kind"], flat["shared"]) == ("floorplan", None)
        shape = made.get("/v1/sites/office").json()
        assert [sensor["zone"] for sensor in shape["sensors"]] == ["left", "left", "right"]
        assert [zone["label"] for zone in shape["zones"]] == ["Left half", "right"]
        assert shape["longer"]["epsilon"] > 120.0
        lanes = made.get("/v1/sites/office/timeline").json()
        assert (lanes["counts"], [zone["id"] for zone in lanes["zones"]]) == (None, ["left", "right"])
        assert made.get("/v1/sites/office/attack").json()["error"]["code"] == "no-map"
