"""Leaks that show in several reports together: the lowest bits of reports in a row, each of which has the right law."""

from typing import Any

import numpy as np
import pytest

from cloakwork.auditing import Verdict, audit
from tests.auditing.sequence_leaks import HonestDevice, ParityLeak

EPSILON, DELTA = 1.0, 1e-3


@pytest.mark.parametrize(
    "leak",
    [
        ParityLeak(),
        ParityLeak(begin=1),
        ParityLeak(lag=2),
        ParityLeak(bit=2),
        ParityLeak(unit=0.001),
    ],
    ids=str,
)
def test_a_bit_hidden_in_two_reports_is_a_violation(leak: ParityLeak) -> None:
    result = audit(leak, epsilon=EPSILON, delta=DELTA, reports=20_000, rng=np.random.default_rng(1))
    assert result.verdict is Verdict.VIOLATION
    assert result.witness is not None
    assert result.witness.span == 2
    assert "reports" in result.witness.event
    favoured, other = (
        result.witness.frequencies if result.witness.direction == "0->1" else result.witness.frequencies[::-1]
    )
    assert favoured > np.exp(2 * EPSILON) * other + 2 * DELTA


def test_an_honest_device_with_a_biased_bit_is_not_taken_for_dependent() -> None:
    def mostly_even(database: int, size: int, rng: np.random.Generator) -> Any:
        noise = 2 * HonestDevice(1.0)(database, size, rng)
        return noise + (rng.random(size) < 0.1)

    result = audit(mostly_even, epsilon=2.0, delta=1e-3, reports=20_000, rng=np.random.default_rng(1))
    assert result.verdict is Verdict.NONE_FOUND
