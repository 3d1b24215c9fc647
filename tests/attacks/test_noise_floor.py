"""Attack: a converter rounds a reading that has noise of its own, and the noise of the device is planned for that."""

import numpy as np
from scipy import special

import cloakwork as cw
from cloakwork.privacy import noise_table
from tests.attacks.conftest import Attack
from tests.attacks.released_law import law

PARTS = 4  # steps of sending in a step of the hardware


def measured(hardware: float, own: float, epsilon: float, delta: float) -> cw.Cloak:
    """A cloak of one sensor whose hardware reads in steps of `hardware` times the shift of a hidden move."""
    line = cw.HeatLine(n=40, m=1, T=0.05)
    step = hardware * cw.sensitivity(line, alpha=0.1)
    return cw.Cloak(
        line,
        epsilon=epsilon,
        delta=delta,
        alpha=0.1,
        hardware=cw.Hardware(resolution=step, noise_floor=own * step, step=step / PARTS),
    )


def converted(x: float, own: float, levels: np.ndarray) -> np.ndarray:
    """The probability of each level of a converter that reads x with a noise floor, both in its steps."""
    edges = (np.append(levels - 0.5, levels[-1] + 0.5) - x) / own
    upper = edges[1:] > 0
    return np.where(upper, special.ndtr(-edges[:-1]) - special.ndtr(-edges[1:]), np.diff(special.ndtr(edges)))


def test_a_noisy_converter_meets_the_claim_at_every_offset(attack: Attack) -> None:
    """The exact delta of what is sent by a converter with a noise floor, over offsets, moves, noise and step.

    Claim: with `noise_floor` stated, a sensor that has it meets (epsilon, delta) wherever its reading lies between the
    steps of its hardware, for every move that the claim hides.
    """
    levels = np.arange(-14, 18)
    for hardware, own in ((1.0, 0.5), (0.3, 0.64), (0.5, 0.25), (0.7, 1.5), (2.0, 1.0))[: attack.size(3, 5)]:
        for epsilon, delta in ((1.0, 1e-5), (0.1, 0.02), (4.0, 1e-6))[: attack.size(2, 3)]:
            cloak = measured(hardware, own, epsilon, delta)
            noise = np.array([float(p) for p in law(noise_table(float(cloak.ratios[0])))]) / 2.0**128
            for part in (0.01, 0.4, 1.0):
                for offset in np.linspace(0, 1, attack.size(7, 60), endpoint=False):
                    laws = []
                    for x in (offset, offset + part / hardware):
                        spread = np.zeros(PARTS * (len(levels) - 1) + 1)
                        spread[::PARTS] = converted(x, own, levels)
                        laws.append(np.convolve(spread, noise))
                    for p, q in (laws, laws[::-1]):
                        attack.compare(np.maximum(p - np.exp(epsilon) * q, 0).sum(), delta)


def audited(cloak: cw.Cloak, own: float, seed: int) -> cw.Audit:
    """Audit a device behind a converter with this noise floor, in steps of the hardware, at the worst place."""
    step = cloak.resolution
    apart = np.array([0.49, 0.49 + cloak.sensitivity / step])

    def device(database: int, size: int, rng: np.random.Generator) -> np.ndarray:
        hardware = np.rint(apart[database] + own * rng.standard_normal((size, 1))) * step
        return cloak.to_steps(cloak.simulate(hardware, rng=rng))[:, 0]

    return cw.audit(device, epsilon=cloak.epsilon, delta=cloak.delta, rng=np.random.default_rng(seed), reports=4000)


def test_an_audit_finds_a_converter_without_the_stated_noise(attack: Attack) -> None:
    """An audit of a device whose converter has the stated noise floor, and of one whose converter has none.

    Claim: the audit finds no violation by the first, and finds the second, whose readings jump by two steps.
    """
    cloak = measured(0.97, 0.6, 1.0, 0.05)
    for seed in range(attack.size(1, 20)):
        attack.expect(audited(cloak, 0.6, seed).verdict == "no violation found")
        attack.expect(audited(cloak, 0.0, seed).verdict == "violation")
