"""Attack: hardware that reads in steps turns a move too small to matter into a jump of a whole step."""

import warnings

import numpy as np
import pytest

import cloakwork as cw
from cloakwork.privacy import noise_table, simulated_words
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


def warnings_of(cloak: cw.Cloak, readings: np.ndarray) -> list[str]:
    """The texts of the warnings that a release gives."""
    with warnings.catch_warnings(record=True, action="always") as given:
        cloak.release(readings)
    return [str(one.message) for one in given if one.category is cw.HardwareStepWarning]


def test_a_stated_step_of_the_hardware_meets_the_claim(attack: Attack) -> None:
    """The exact delta between a reading and its neighbour, both rounded by hardware, at every position of its step.

    Claim: with `resolution` stated, `release` meets (epsilon, delta) for true readings that a hidden move turns into
    each other, whether the hardware rounds to the nearest step or cuts off.
    """
    for hardware in STEPS[: attack.size(1, 6)]:
        cloak = cw.Cloak(line(), epsilon=EPSILON, delta=DELTA, alpha=0.1, hardware=cw.Hardware(resolution=hardware))
        at = np.linspace(-2 * hardware, 2 * hardware, attack.size(1001, 20_001))[:, None]
        worst = 0
        for part in np.linspace(0.001, 1.0, attack.size(7, 50)):
            moved = at + part * cloak.sensitivity
            for rounding in (np.rint, np.floor):
                worst = max(worst, sent_apart(cloak, *(hardware * rounding(x / hardware) for x in (at, moved))))
        attack.compare(float(exact_delta(noise_table(float(cloak.ratios[0])), worst, EPSILON)), DELTA, tried=at.size)


def test_readings_on_a_grid_give_a_warning(attack: Attack) -> None:
    """Release of hardware readings through a cloak that knows no step, over steps, offsets, frames and sensors.

    Claim: `release` warns of readings of such hardware, zeros and single readings included, always in the same words,
    and spends what it always spends.
    """
    rng = np.random.default_rng(5)
    tries = attack.size(20, 2000)
    texts = set()
    for sensors in (1, 12):
        physics = cw.HeatLine(n=40, m=sensors, T=0.05)
        for hardware in STEPS:
            cloak = cw.Cloak(physics, epsilon=EPSILON, delta=DELTA, alpha=0.1, readings_per_window=3 * tries)
            for _ in range(tries):
                counts = rng.integers(-400, 400, size=(rng.integers(1, 4), sensors)) * rng.integers(0, 2)
                readings = hardware * counts + rng.choice([0.0, 20.0]) - 20.0
                spent = cloak.spent
                texts.update(warned := warnings_of(cloak, readings))
                attack.expect(len(warned) == 1 and cloak.spent == spent + len(readings))
    attack.expect(len(texts) == 1)


def test_every_source_is_released_alike(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Release of computed readings of every source, in sight of sensors or not, to find one treated unlike others.

    Claim: `release` takes computed readings without a statement, and what it returns and spends does not depend on
    whether it warns, so neither tells two neighbours apart.
    """
    warned = set()
    for time, sensors in ((1e-4, 5), (2e-4, 4), (5e-4, 3), (1e-3, 2))[: attack.size(1, 4)]:
        physics = cw.HeatLine(n=100, m=sensors, T=time)
        for weight in (1.0, 0.5, 0.3)[: attack.size(1, 3)]:
            cloak = cw.Cloak(physics, epsilon=1.0, delta=1e-6, alpha=0.01, readings_per_window=100)
            for place in range(100):
                readings = physics.apply(weight * np.eye(100)[place])
                words = simulated_words(np.random.default_rng(place))
                monkeypatch.setattr("cloakwork.privacy.cloak.private_words", words)
                with warnings.catch_warnings(record=True, action="always") as given:
                    released = cloak.release(readings)
                expected = cloak.simulate(readings, rng=np.random.default_rng(place))
                attack.expect(bool((released == expected).all()) and cloak.spent == place + 1)
                warned.add(len(given))
    assert warned == {0, 1}  # sources of both kinds were tried


def test_a_warning_that_is_an_error_spends_the_frame_all_the_same() -> None:
    cloak = cw.Cloak(line(), epsilon=EPSILON, delta=DELTA, alpha=0.1)
    with warnings.catch_warnings(action="error"), pytest.raises(cw.HardwareStepWarning):
        cloak.release([21.3125])
    assert cloak.spent == 1
