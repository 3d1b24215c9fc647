"""Attack: hardware that reads in steps turns a move too small to matter into a jump of a whole step."""

import numpy as np
import pytest

import cloakwork as cw
from tests.attacks.conftest import Attack
from tests.attacks.released_law import exact_delta

EPSILON, DELTA = 4.0, 1e-5
STEPS = (0.0625, 0.25, 0.1, 0.02, 0.5, 1.0)


def line() -> cw.HeatLine:
    return cw.HeatLine(n=40, m=1, T=0.05)


def sent_apart(cloak: cw.Cloak, readings: np.ndarray, moved: np.ndarray) -> int:
    """How many steps apart two sets of readings are sent at most: the same seed gives both the same noise."""
    first, second = (cloak.to_steps(cloak.simulate(r, rng=np.random.default_rng(1))) for r in (readings, moved))
    return int(np.abs(second - first).max())


def test_a_stated_step_of_the_hardware_meets_the_claim(attack: Attack) -> None:
    """The exact delta between a reading and its neighbour, both rounded by hardware, at every position of its step.

    Claim: with `resolution` stated, `release` meets (epsilon, delta) for true readings that a hidden move turns into
    each other, whether the hardware rounds to the nearest step or cuts off.
    """
    for hardware in STEPS[: attack.size(1, 6)]:
        cloak = cw.Cloak(line(), epsilon=EPSILON, delta=DELTA, alpha=0.1, resolution=hardware)
        at = np.linspace(-2 * hardware, 2 * hardware, attack.size(1001, 20_001))[:, None]
        worst = 0
        for part in np.linspace(0.001, 1.0, attack.size(7, 50)):
            moved = at + part * cloak.sensitivity
            for rounding in (np.rint, np.floor):
                worst = max(worst, sent_apart(cloak, *(hardware * rounding(x / hardware) for x in (at, moved))))
        attack.compare(float(exact_delta(float(cloak.ratios[0]), worst, EPSILON)), DELTA, tried=at.size)


def test_readings_on_a_grid_are_refused_whatever_they_are(attack: Attack) -> None:
    """Release of hardware readings through a cloak that knows no step, over steps, offsets, frames and sensors.

    Claim: `release` covers exact readings only, unless `resolution` states the step of the hardware. It refuses all
    readings of such hardware alike, zeros and single readings included, so that the refusal tells nothing about them.
    """
    rng = np.random.default_rng(5)
    texts = set()
    for sensors in (1, 12):
        physics = cw.HeatLine(n=40, m=sensors, T=0.05)
        cloak = cw.Cloak(physics, epsilon=EPSILON, delta=DELTA, alpha=0.1, readings_per_window=9)
        for hardware in STEPS:
            for _ in range(attack.size(20, 2000)):
                counts = rng.integers(-400, 400, size=(rng.integers(1, 4), sensors)) * rng.integers(0, 2)
                readings = hardware * counts + rng.choice([0.0, 20.0]) - 20.0
                try:
                    cloak.release(readings)
                except cw.ReadingError as refusal:
                    texts.add(str(refusal))
                attack.expect(cloak.spent == 0)
    attack.expect(len(texts) == 1)


def test_computed_readings_are_released_for_all_neighbours(attack: Attack) -> None:
    """Release of computed readings for many maps and their neighbours, to find one that is refused.

    Claim: `release` takes computed readings without a statement, so a refusal tells no two neighbours apart.
    """
    rng = np.random.default_rng(6)
    physics = cw.HeatLine(n=40, m=5, T=0.05)
    tries = attack.size(200, 20_000)
    cloak = cw.Cloak(physics, epsilon=EPSILON, delta=DELTA, alpha=0.1, readings_per_window=tries)
    for _ in range(tries):
        weights = np.zeros(40)
        weights[rng.choice(40, size=2, replace=False)] = rng.choice([1.0, 0.5, 0.25], size=2)
        try:
            cloak.release(physics.apply(weights))
        except cw.ReadingError:
            attack.expect(False)
        else:
            attack.expect(True)


def test_the_refusal_names_the_remedy_and_no_reading() -> None:
    cloak = cw.Cloak(line(), epsilon=EPSILON, delta=DELTA, alpha=0.1)
    with pytest.raises(cw.ReadingError) as refused:
        cloak.release([21.3125])
    assert refused.value.values == {"step": cloak.step}
    assert "21" not in str(refused.value)
    assert cloak.release([21.3125], exact=True).shape == (1,)
    assert cw.Cloak(line(), epsilon=EPSILON, delta=DELTA, alpha=0.1, resolution=0.0625).release([21.3125]).shape == (1,)
