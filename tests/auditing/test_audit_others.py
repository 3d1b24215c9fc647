"""Our auditor as the oracle of choices, and of Laplace noise for single sensors."""

import numpy as np
import pytest

import cloakwork as cw
from cloakwork.auditing import Verdict
from cloakwork.auditing.query_plan import Mechanism

SHARES = pytest.mark.parametrize(("share", "verdict"), [(1.0, Verdict.NONE_FOUND), (0.6, Verdict.VIOLATION)])
FRAMES = 30_000


def judged(mechanism: Mechanism, epsilon: float, delta: float = 0.0, reports: int = FRAMES) -> Verdict:
    # what is released is new each time: one honest mechanism in a thousand may be accused
    rng = np.random.default_rng(7)
    result = cw.audit(mechanism, epsilon=epsilon, delta=delta, reports=reports, confidence=0.999, rng=rng)
    return result.verdict


@SHARES
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_a_choice_keeps_its_epsilon_and_not_six_tenths_of_it(mechanism: str, share: float, verdict: Verdict) -> None:
    scores = [[1] + 7 * [0], [0] + 7 * [1]]  # one person changes each score by 1
    asked = lambda database, size, _: np.array(  # noqa: E731
        [cw.choose(scores[database], epsilon=2.0, mechanism=mechanism) for _ in range(size)]
    )
    assert judged(asked, 2.0 * share, reports=8_000) is verdict


@SHARES
def test_laplace_noise_of_single_sensors_keeps_its_epsilon_and_not_six_tenths_of_it(
    share: float, verdict: Verdict
) -> None:
    line = cw.HeatLine(n=10, m=3, T=0.05)
    claim = {"epsilon": 3.0 * FRAMES, "delta": 0.0, "alpha": 0.1, "readings_per_window": 3 * FRAMES}
    cloak = cw.Cloak(line, **claim, scope="sensor", noise="laplace")  # type: ignore[arg-type]
    assert cloak.compose(1).epsilon(0.0) == pytest.approx(1.0, rel=1e-6)
    slopes = np.abs(np.diff(line.matrix, axis=1)) / np.diff(line.space.places[:, 0])
    sensor, place = np.unravel_index(slopes.argmax(), slopes.shape)
    moved = np.zeros(3)
    moved[sensor] = 0.1 * slopes[sensor, place]  # as far as a hidden move can shift it

    def mechanism(database: int, size: int, _: np.random.Generator) -> np.ndarray:
        frames = cloak.release(np.tile(database * moved, (size, 1)), exact=True)
        return cloak.to_steps(frames)[:, sensor]

    assert judged(mechanism, share) is verdict
