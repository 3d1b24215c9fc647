"""Attack: the whole numbers that leave a device have another law than the Gaussian noise that is claimed."""

import numpy as np

import cloakwork as cw
from cloakwork.privacy import NoiseLaw, noise_table
from tests.attacks.conftest import Attack
from tests.attacks.released_law import allowed_delta, exact_delta

EPSILONS = (0.1, 1.0, 4.0)


def test_the_noise_of_a_table_has_the_delta_of_gaussian_noise(attack: Attack) -> None:
    """The exact delta of noise from the bytes of its table, over whole steps, against the Gaussian formula.

    Claim: noise of `ratio` steps, as a device adds it, hides a shift of k steps with the delta of Gaussian noise at
    mu = k / ratio, plus (1 + e^epsilon) times the error that the table states.
    """
    ratios = (0.7, 2.5, 17.3, 129.0, 265.0, 700.0, 3017.0)[: attack.size(4, 7)]
    for ratio in ratios:
        for mu in (0.2, 1.0, 3.0)[: attack.size(2, 3)]:
            shift = max(1, round(mu * ratio))
            for epsilon in EPSILONS[: attack.size(2, 3)]:
                claimed = allowed_delta(shift / ratio, epsilon) + (1 + np.exp(epsilon)) * noise_table(ratio).error
                attack.compare(float(exact_delta(noise_table(ratio), shift, epsilon) / claimed), 1.0)


def test_a_released_reading_meets_the_claim_of_its_cloak(attack: Attack) -> None:
    """The exact delta of a released reading for the two neighbours that rounding drives furthest apart.

    Claim: `Cloak.release` meets (epsilon, delta) for any two readings that a hidden move turns into each other,
    whatever the step, and with the step of the hardware on top.
    """
    line = cw.HeatLine(n=20, m=1, T=0.05)
    for scale in (1.0, 0.3, 0.1)[: attack.size(2, 3)]:
        for hardware in (None, scale):
            cloak = cw.Cloak(
                line, epsilon=1.0, delta=1e-5, alpha=0.1, hardware=cw.Hardware(step=scale / 8, resolution=hardware)
            )
            reach = cloak.sensitivity * (1 - 1e-9) + (hardware or 0.0)  # the last step of hardware is never reached
            shift = int(np.ceil(reach / cloak.step))
            attack.compare(float(exact_delta(noise_table(float(cloak.ratios[0])), shift, 1.0)), 1e-5)


def test_laplace_noise_of_a_device_meets_a_delta_of_zero(attack: Attack) -> None:
    """The exact delta of a reading with Laplace noise, from the bytes of its table, for the furthest neighbours.

    Claim: with `noise="laplace"` and delta = 0, a reading has no delta but the error that its table states; and with a
    delta, it meets that.
    """
    line = cw.HeatLine(n=20, m=1, T=0.05)
    for hardware, delta in ((None, 0.0), (0.05, 0.01), (0.1, 0.0))[: attack.size(2, 3)]:
        cloak = cw.Cloak(
            line,
            epsilon=1.0,
            delta=delta,
            alpha=0.1,
            scope="sensor",
            noise="laplace",
            hardware=cw.Hardware(resolution=hardware, step=0.02),
        )
        shift = int(np.ceil((cloak.sensitivity * (1 - 1e-9) + (hardware or 0.0)) / cloak.step))
        table = NoiseLaw.LAPLACE.distribution.table(float(cloak.ratios[0]))
        error = (1 + np.exp(1.0)) * table.error
        assert error < 1e-33
        attack.compare(float(exact_delta(table, shift, 1.0)), delta + error)
