"""Long stays: the offsets that hide them, what a stay tells, and what recovery does with the offsets."""

import math

import numpy as np
import pytest
from scipy import special

import cloakwork as cw
from cloakwork._checks import FloatArray
from cloakwork.errors import CalibrationError
from cloakwork.physics import Matrix, Space
from cloakwork.privacy import Information, OffsetWalk, Profile, SlowNoise, noise_table, simulated_words
from cloakwork.privacy.long_stay import RENEWED, WHOLE
from cloakwork.privacy.noise_floor import NoiseFloor
from cloakwork.sensor import OFFSET_PARTS, renewed, whole_steps
from tests.options import grouped

ROW = Matrix(np.array([[1.0, 0.4, 0.1, 0.0], [0.1, 0.5, 1.0, 0.3], [0.0, 0.2, 0.6, 1.0]]), Space.line(4))
CLAIM = {"epsilon": 8.0, "delta": 1e-5, "alpha": 0.2}


def cloak(readings: int = 64, epsilon: float = 12.0, **changed: object) -> cw.Cloak:
    stated = {**CLAIM, "readings_per_window": 4, "stay": cw.Stay(readings, epsilon, 1e-5), **changed}
    return cw.Cloak(ROW, **grouped(stated))


def stays(frames: int, longest: int) -> list[slice]:
    return [slice(a, b) for a in range(frames) for b in range(a + 1, min(frames, a + longest) + 1)]


@pytest.mark.parametrize(
    ("readings", "renew", "fade", "share"),
    [(12, 4, 0.7, 0.3), (17, 1, 0.95, 0.2), (9, 16, 0.8, 0.5), (1, 4, 0.9, 2.0), (40, 8, 0.9, 5.0)],
)
def test_no_stay_at_any_frames_tells_more_than_stated(readings: int, renew: int, fade: float, share: float) -> None:
    blocks = np.arange(160) // renew
    precision = np.linalg.inv(np.eye(160) + share * fade ** np.abs(np.subtract.outer(blocks, blocks)))
    most = max(precision[span, span].sum() for span in stays(160, readings))
    stated = Information(share, fade, renew).of(readings)
    assert most <= stated
    assert most >= 0.999 * stated, "and some stay reaches it"


def test_offsets_that_are_known_outside_cost_no_more_than_stated() -> None:
    information = Information(0.3, 0.8, 4)
    stated, frames = information.known_outside(20)
    margin = round((frames - 20) / 2 / 4)
    blocks = np.arange(-margin, 20 // 4 + 1 + margin)
    around = np.eye(len(blocks)) * (4 + (1 + 0.8**2) / (0.3 * (1 - 0.8**2)))
    around -= (np.eye(len(blocks), k=1) + np.eye(len(blocks), k=-1)) * 0.8 / (0.3 * (1 - 0.8**2))
    for first in range(1, 5):
        counts = np.clip(20 - first - 4 * np.arange(6) + 4, 0, 4)
        counts[0] = first
        inside = np.zeros(len(blocks))
        inside[margin : margin + 6] = counts
        assert inside.sum() - inside @ np.linalg.solve(around, inside) <= stated


def test_brute_force_neighbours_over_whole_stays_never_exceed_the_claim() -> None:
    """Every stay, between all neighbouring places, by the covariance of all readings of all sensors over time."""
    planned, frames = cloak(), 120
    assert planned.slow is not None
    blocks = np.arange(frames) // planned.slow.renew
    over_time = planned.slow.fade ** np.abs(np.subtract.outer(blocks, blocks))
    slow = planned.slow.deviations(planned.steps)
    worst = 0.0
    for a, b in ((0, 1), (1, 2), (2, 3)):
        moved = planned.alpha * (ROW.matrix[:, a] - ROW.matrix[:, b]) / ROW.space.distances(a)[b]
        total = np.zeros((frames, frames))
        for sensor in range(3):
            covariance = planned.sigmas[sensor] ** 2 * np.eye(frames) + slow[sensor] ** 2 * over_time
            total += moved[sensor] ** 2 * np.linalg.inv(covariance)
        worst = max(worst, *(total[span, span].sum() for span in stays(frames, 64)))
    epsilon = Profile(math.sqrt(worst)).epsilon(1e-5)
    assert 0.9 * 12.0 < epsilon <= 12.0, "the rest covers rounding"
    assert Profile(planned.frame_mu * 8).epsilon(1e-5) > 2 * 12.0, "fresh noise alone reveals far more"


def test_shifted_draws_shift_an_offset_exactly_and_only_during_the_stay() -> None:
    """The coupling of the proof: the same draws but for a shift in the stay, up to two parts besides the ideal one."""
    carry, fade = 60000, 60000 / 65536
    rng = np.random.default_rng(5)
    for _ in range(20):
        ideal = np.concatenate([[0.0], np.cumsum(rng.normal(0, 400, 30)), np.zeros(40)])
        shift = np.rint(ideal).astype(int).tolist()
        offset = int(rng.integers(-10_000, 10_000))
        moved = offset
        for k in range(1, len(shift)):
            draw = round(rng.normal(0, 300))
            extra = shift[k] - (renewed(offset + shift[k - 1], 0, carry) - renewed(offset, 0, carry))
            assert abs(extra - (ideal[k] - fade * ideal[k - 1])) <= RENEWED
            offset, moved = renewed(offset, draw, carry), renewed(moved, draw + extra, carry)
            assert moved == offset + shift[k]
            assert abs(whole_steps(moved) - whole_steps(offset) - ideal[k] / OFFSET_PARTS) <= WHOLE


def test_a_walk_has_the_stated_variance_and_correlation_from_its_first_frame_on() -> None:
    slow = SlowNoise(58982, 2, np.full(400, 300.0))
    drawn = OffsetWalk(slow, simulated_words(np.random.default_rng(2))).steps(6).astype(float)
    deviation = slow.deviations(np.ones(400))[0]
    assert (drawn[0] == drawn[1]).all(), "renewed every second reading"
    assert drawn[0].std() == pytest.approx(deviation, rel=0.15)
    assert drawn[5].std() == pytest.approx(deviation, rel=0.15)
    assert np.corrcoef(drawn[1], drawn[2])[0, 1] == pytest.approx(slow.fade, abs=0.06)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"stay": cw.Stay(3, 12.0, 1e-5)}, "shorter than a window"),
        ({"stay": cw.Stay(64, 1e-3, 1e-5), "resolution": 0.5}, "noise_floor of half a step"),
        ({"stay": cw.Stay(64, 1e-3, 1e-5), "resolution": 0.5, "noise_floor": 0.4}, "times finer"),
        ({"stay": cw.Stay(64, 12.0, 1e-5, offsets=SlowNoise(60000, 1, np.full(3, 1.0)))}, "leave offsets out"),
    ],
)
def test_a_stay_that_cannot_be_hidden_is_refused(changed: dict[str, object], says: str) -> None:
    with pytest.raises(CalibrationError, match=says):
        cloak(**changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("readings", "renew", "fade", "share"), [(12, 4, 0.7, 0.3), (50, 16, 0.8, 0.5), (9, 1, 0.9, 2.0)]
)
def test_no_stay_changes_more_frames_or_renewals_than_are_counted(
    readings: int, renew: int, fade: float, share: float
) -> None:
    information = Information(share, fade, renew)
    _, frames = information.known_outside(readings)
    beside = round((frames - readings) / (2 * renew))  # the offset that many blocks away is known
    for span in stays(4 * renew + readings, readings):
        blocks = (span.stop - 1) // renew - span.start // renew + 1 + 2 * (beside - 1)
        assert renew * blocks <= frames
        assert blocks + 1 <= information.renewals(frames), "with the renewal that leads back"


def test_noise_floor_hides_the_steps_of_the_hardware_from_an_offset_of_any_size() -> None:
    """What is sent with a reading that moves by d, less a known offset c, against the stated mu, by its exact law."""
    rng, values = np.random.default_rng(4), np.arange(-14, 18)

    def law(x: float, own: float, sigma: float, at: FloatArray) -> FloatArray:
        edges = special.ndtr((np.append(values, 18) - 0.5 - x) / own)
        return np.asarray(np.diff(edges) @ np.exp(-(((at - values[:, None]) / sigma) ** 2) / 2))

    for _ in range(150):
        own, spent = rng.choice([0.25, 0.4, 0.64, 1.0]), rng.choice([0.01, 0.1, 0.3])
        sigma, x, d = math.exp(rng.uniform(-1.2, 1.8)), rng.uniform(), rng.uniform(-3, 3)
        c = d + rng.choice([0.0, 0.3]) * rng.normal()
        rest = float(NoiseFloor(np.array([own]), np.ones(1)).wobble(np.array([spent * sigma**2]))[0])
        claim = Profile((abs(d - c) + rest) / (sigma * math.sqrt(1 - spent)))
        at = np.linspace(-15 - 8 * sigma, 18 + 8 * sigma, 3001)
        one, other = law(x, own, sigma, at), law(x + d, own, sigma, at + c)
        for epsilon in (0.0, 0.1, 1.0):
            for first, second in ((one, other), (other, one)):
                delta = np.maximum(first / one.sum() - math.exp(epsilon) * second / other.sum(), 0).sum()
                assert delta <= claim.delta(epsilon) + 1e-9


def test_a_pulse_does_not_stay_and_a_cloak_of_one_window_does_not_release_stays() -> None:
    line = cw.HeatLine(n=20, m=5, T=0.01)
    with pytest.raises(CalibrationError, match="pulse"):
        cw.Cloak(line, epsilon=8.0, delta=1e-5, alpha=0.1, stay=cw.Stay(64, 12.0, 1e-5))
    with pytest.raises(CalibrationError, match="Devices keep them"):
        cloak().release(np.zeros(3))
    with pytest.raises(CalibrationError, match="delta"):
        cw.Stay(64, 12.0, 0.0)


def test_the_tables_of_offsets_fit_on_a_device_and_renewals_are_rare_if_stays_are_long() -> None:
    planned = cloak(readings=9600, epsilon=30.0)
    assert planned.slow is not None
    assert planned.slow.renew == 4
    assert all(len(noise_table(ratio).cuts) <= 56 * 1024 for ratio in planned.slow.ratios.tolist())
    assert cloak(readings=9600).stay_mu(9600) < planned.stay_mu(9600)
