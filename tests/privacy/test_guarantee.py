"""`Guarantee`: one figure for each fact, and the sentences around them."""

import math
import re
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import special

from cloakwork import bayes_risk
from cloakwork._checks import rounded_up
from cloakwork.accuracy import typical_std
from cloakwork.physics import FloorPlan, HeatLine, Matrix, Rooms, Space, Steady
from cloakwork.privacy import Cloak, Flip, Guarantee, NoiseLaw, Profile, Scope, Stay, exposures

ROOM = FloorPlan(Rooms.from_walls((4, 3), cell=0.5), [(1, 1), (3, 2)], Steady(reach=1.0))
SPANS = {"a window": 10, "a day": 1440}


@pytest.fixture
def staying() -> Cloak:
    stay = Stay(readings=480, epsilon=4.0, delta=1e-5, period=60.0)
    return Cloak(ROOM, epsilon=2.0, delta=1e-5, alpha=0.1, readings_per_window=10, stay=stay)


def test_the_sentences_have_the_numbers_of_the_cloak_rounded_outward(staying: Cloak) -> None:
    guarantee = Guarantee.of(staying, spans=SPANS)
    for right, mu in ((guarantee.best_test, staying.profile.mu), (guarantee.stay_best_test, staying.stay_mu(480))):
        exact = 100 * special.ndtr(mu / 2)
        assert exact <= float(right) <= exact + 0.1
        assert f"right in at most {right} %" in str(guarantee.explanation)
    factors = re.findall(r"e\^[24] = ([\d.]+) times", str(guarantee.explanation))
    assert [float(factor) >= math.exp(epsilon) for factor, epsilon in zip(factors, (2, 4), strict=True)] == [True, True]
    [day] = guarantee.over_time[1:]
    left = " ".join(guarantee.explanation.not_hidden)
    assert "a day together have epsilon" in left
    assert day.right_place is not None
    assert f"{rounded_up(100 * day.right_place, 3)} % of cases after a day" in left
    assert "up to 0.1 m" in guarantee.explanation.hidden[0]


def test_what_drives_the_noise_is_named() -> None:
    spiky = np.full((6, 10), 0.1)
    spiky[2, 4] = 5.0
    cloak = Cloak(Matrix(spiky, Space.line(10)), epsilon=1, delta=1e-6, alpha=0.1)
    text = str(cloak.explain())
    assert "(0.4) and (0.5)" in text or "(0.5) and (0.6)" in text
    for fact in ("Sensors 2,", "their number", "outside the model", "24 windows", "weight 2 only"):
        assert fact in text
    alone = Cloak(cloak.physics, epsilon=1, delta=1e-6, alpha=0.1, scope="sensor")
    assert alone.explain().drivers == ("Sensor 2 is the most exposed.",)


def test_what_longer_times_reveal_is_that_of_the_cloak_with_all_its_offsets(staying: Cloak) -> None:
    window, day = exposures(staying, SPANS)
    assert window.epsilon == 2.0
    assert day.epsilon == staying.compose(1440).epsilon(1e-5)
    assert day.best_test_accuracy == staying.compose(1440).best_test_accuracy
    assert day.stay == Profile(staying.stay_mu(1440)).epsilon(1e-5)
    worth = staying.stay_worth(1440)
    risk = bayes_risk(ROOM, staying.claimed_sigmas, readings=math.ceil(worth))
    assert (day.right_place, day.mean_distance) == (risk.right_place, risk.mean_distance)
    assert day.std == typical_std(ROOM, staying.claimed_sigmas / math.sqrt(worth))
    assert day.std > typical_std(ROOM, staying.claimed_sigmas / math.sqrt(1440)), "slow offsets stay"


@pytest.mark.parametrize("noise", NoiseLaw)
def test_a_guarantee_about_one_sensor_adds_up_for_someone_who_sees_all(noise: NoiseLaw) -> None:
    cloak = Cloak(ROOM, epsilon=2.0, delta=1e-5, alpha=0.1, scope=Scope.SENSOR, noise=noise)
    [window] = exposures(cloak, {"a window": 1})
    assert window.epsilon == 2.0
    assert window.together == cloak.compose(2).epsilon(1e-5)
    assert window.best_test_accuracy == cloak.compose(2).best_test_accuracy
    assert (window.right_place is None) == (noise is NoiseLaw.LAPLACE)
    assert window.std is not None


def test_a_source_that_is_found_anyway_is_not_simulated_again() -> None:
    line = HeatLine(n=10, m=10, T=0.001)
    spans = list(exposures(Cloak(line, epsilon=8, delta=1e-5, alpha=0.1), {"short": 1, "long": 10**6, "longer": 10**9}))
    assert (spans[-1].right_place, spans[-1].mean_distance) == (1.0, 0.0)
    assert np.diff([span.epsilon for span in spans]).min() > 0


@pytest.mark.parametrize(
    ("flip", "said"),
    [
        ({"epsilon": 1.0, "readings_per_window": 1}, "one sensor saw"),
        ({"epsilon": 2.0, "delta": 1e-5, "readings_per_window": 60, "sensors": 3}, "up to 3 sensors saw"),
    ],
)
def test_randomised_response_has_the_same_figures(flip: Mapping[str, float], said: str) -> None:
    mechanism = Flip(**flip)  # type: ignore[arg-type]
    guarantee = Guarantee.of_flip(mechanism)
    assert said in str(mechanism.explain())
    right = mechanism.best_test_accuracy(mechanism.readings_per_window)
    assert float(guarantee.best_test) >= 100 * right == 100 * guarantee.over_time[0].best_test_accuracy
    assert guarantee.over_time[-1].epsilon == mechanism.compose(24 * mechanism.readings_per_window, mechanism.delta)
    [truth] = re.findall(r"true value in ([\d.]+) %", str(mechanism.explain()))
    assert float(truth) <= 100 * mechanism.truth
