"""People in infrared pictures."""

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.privacy import Cloak
from papers.bodies import (
    BLOCK,
    COLUMNS,
    INSIDE,
    MARGIN,
    ROWS,
    WITHIN,
    blocks,
    fit,
    heights,
    limits,
    near,
    shares,
    shifted,
)
from papers.experiments.recorded_warmth import STANDARD
from papers.recordings import Infrared

AT = np.array([[5.0, 6.0], [24.5, 18.0]])


def picture(people: FloatArray, height: float) -> FloatArray:
    """Pixels of round bumps of 2.5 pixels on a floor of 40."""
    y, x = np.mgrid[0.5:ROWS, 0.5:COLUMNS]
    away = [(x - a) ** 2 + (y - b) ** 2 for a, b in people]
    return np.asarray(40 + height * np.exp(-np.array(away) / (2 * 2.5**2)).sum(axis=0))


def test_a_known_body_is_found_again() -> None:
    readings = blocks(np.array([picture(AT, 100.0), picture(AT[::-1] + 2, 200.0)]))
    body = fit(readings, [AT, AT[::-1] + 2])
    assert body.width == pytest.approx(2.55, abs=0.1)  # a block is a little wider than a pixel
    assert body.height == pytest.approx(MARGIN * 200, rel=0.08)
    assert body.weakest == pytest.approx(100, rel=0.08)
    assert body.floor == pytest.approx(40, abs=1)
    assert body.misfit < 1
    assert heights(readings[0], AT, body.width)[:2] == pytest.approx([100, 100], rel=0.08)


def test_no_step_from_pixel_to_pixel_moves_the_readings_by_more_than_the_claim_covers() -> None:
    camera = STANDARD.camera
    cloak = Cloak(camera, epsilon=16.0, delta=1e-5, alpha=1.0)
    steps = camera.matrix[:, camera.space.pairs[:, 0]] - camera.matrix[:, camera.space.pairs[:, 1]]
    largest = float(np.linalg.norm(steps, axis=0).max())
    assert largest <= cloak.sensitivity <= largest * (1 + 1e-6)
    rng = np.random.default_rng(1)
    for _ in range(50):
        i, j = rng.integers(0, camera.places, 2)
        far = float(np.linalg.norm(camera.matrix[:, i] - camera.matrix[:, j]))
        assert far <= cloak.sensitivity * float(camera.space.distances(int(i))[j]) * (1 + 1e-9)


def test_everyone_needs_a_position_of_their_own() -> None:
    people = [np.array([[5.0, 5.0], [6.0, 5.0], [20.0, 20.0]])]
    one = shares(people, [[(5.5, 5.0)]])
    assert [round(3 * one.over_pictures[k].value) for k in range(len(WITHIN))] == [1] * len(WITHIN)
    three = shares(people, [[(5.5, 5.0), (5.5, 5.0), (20.0, 23.5)]])
    assert [round(3 * three.over_pictures[k].value) for k in range(len(WITHIN))] == [2, 2, 2, 3, 3]
    assert near(people[0], np.array([[20.0, 20.0]])).sum(axis=1).tolist() == [0, 0, len(WITHIN)]
    nobody = shares(people, [[]]).over_pictures[1]
    assert nobody.value == 0
    assert nobody.error > 0


def test_slid_pictures_keep_every_pixel_and_the_place_of_people_in_them() -> None:
    rng = np.random.default_rng(2)
    frames = np.array([picture(AT, 150.0)] * 30)
    moved = shifted(Infrared(frames, (AT,) * 30), rng)
    assert np.sort(moved.frames, axis=None) == pytest.approx(np.sort(frames, axis=None))
    for frame, at in zip(moved.frames, moved.people, strict=True):
        assert (np.minimum(at, (COLUMNS, ROWS) - at) >= INSIDE).all()
        warm = [frame[int(y), int(x)] for x, y in at]
        assert warm == pytest.approx([frames[0][6, 5], frames[0][18, 24]], rel=0.05)
    assert np.std([at[0] for at in moved.people], axis=0).min() > 4


def test_the_limit_is_that_of_the_information() -> None:
    far = limits(AT, np.array([200.0, 200.0]), 2.4, 40.0)
    lone = limits(AT[:1], np.array([200.0]), 2.4, 40.0)
    assert far[0] == pytest.approx(lone[0], rel=1e-6, abs=1e-9)
    assert limits(AT, np.array([100.0, 200.0]), 2.4, 40.0)[0] == pytest.approx(4 * far[0], rel=1e-4, abs=1e-6)
    # a round bump in the middle, read finely: sigma^2 / (height^2 pi / 2) for each block of one unit
    assert lone[0, 0, 0] == pytest.approx(40.0**2 * BLOCK**2 / (200.0**2 * np.pi / 2), rel=0.02)
    assert np.isinf(limits(AT[[0, 0]], np.array([100.0, 100.0]), 2.4, 40.0)[0, 0, 0])
