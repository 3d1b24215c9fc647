"""Attacks on the auditor: devices that leak and want to pass, and honest ones that must not be accused."""

import numpy as np

from benchmarks.mechanisms import boundary_cases, broken_cases
from cloakwork.auditing import Verdict, audit
from tests.attacks.conftest import Attack
from tests.auditing.sequence_leaks import HonestDevice, ParityLeak


def test_leaks_in_several_reports_never_pass(attack: Attack) -> None:
    """Devices that hide their input in the parity of low bits of several reports, each of which has the right law.

    Claim: an audit of 40,000 reports does not pass the devices listed here. Their input is the parity of a bit of two
    reports next to each other, 3 or 50 apart, or of three or four in a row: the lowest bit, and once the third, at
    epsilon 1 and 5.
    """
    leaks = [
        ParityLeak(),
        ParityLeak(reports=3),
        ParityLeak(begin=1),
        ParityLeak(lag=50),
        ParityLeak(epsilon=5.0),
        ParityLeak(reports=4),
        ParityLeak(share=0.3),
        ParityLeak(bit=2),
        ParityLeak(unit=0.1),
        ParityLeak(lag=3, begin=2),
        ParityLeak(reports=3, begin=1, unit=0.001),
        ParityLeak(reports=4, epsilon=5.0),
    ]
    for number, leak in enumerate(leaks[: attack.size(2, len(leaks))]):
        for seed in range(attack.size(1, 3)):
            rng = np.random.default_rng([number, seed])
            result = audit(leak, epsilon=leak.epsilon, delta=1e-3, reports=40_000, rng=rng)
            attack.expect(result.verdict is not Verdict.NONE_FOUND)


def test_broken_mechanisms_are_found(attack: Attack) -> None:
    """Broken mechanisms of practice, such as noise that is cut off or a lattice that tells the input.

    Claim: an audit of 500,000 reports finds each of those on the page about auditing.
    """
    cases = sorted(broken_cases(), key=lambda case: case.name not in {"shifted lattice", "truncated noise"})
    for case in cases[: attack.size(1, len(cases))]:
        rng = np.random.default_rng(7)
        result = audit(case.mechanism, epsilon=case.epsilon, delta=case.delta, rng=rng)
        attack.expect(result.verdict is Verdict.VIOLATION)


def test_honest_devices_are_rarely_accused(attack: Attack) -> None:
    """Honest devices at the very edge of their claim: how often an audit accuses them, against what it states.

    Claim: an audit at confidence c accuses a device that keeps its claim with a probability of at most 1 - c.
    """
    devices = [(case.mechanism, case.epsilon, case.delta) for case in boundary_cases()]
    devices.append((HonestDevice(1.0), 1.0, 1e-3))
    number = attack.size(1, 20)
    for confidence in (0.8, 0.95)[: attack.size(1, 2)]:
        accused = 0
        for place, (mechanism, epsilon, delta) in enumerate(devices):
            for seed in range(number):
                result = audit(
                    mechanism,
                    epsilon=epsilon,
                    delta=delta,
                    reports=attack.size(1_500, 3_000),
                    confidence=confidence,
                    rng=np.random.default_rng([place, seed]),
                )
                accused += result.verdict is Verdict.VIOLATION
        attack.compare(accused / (number * len(devices)), 1 - confidence, tried=number * len(devices))
