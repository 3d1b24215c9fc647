"""The best attack."""

import math

import numpy as np
import pytest
from scipy import special
from scipy.stats import norm

from cloakwork.privacy import Scope, largest_mu
from papers.attack import (
    Setting,
    allowed,
    allowed_advantage,
    ratios_of,
    releases,
    separation,
    shifts,
    window_on,
    worst_neighbours,
)
from papers.calibration import Calibration


class TestClosedForms:
    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (4.0, 1e-5), (0.2, 0.0)])
    def test_what_a_claim_allows_is_met_by_randomised_response(self, epsilon: float, delta: float) -> None:
        # tells the truth with probability delta, else answers with odds e^epsilon
        right = delta + (1 - delta) / (1 + math.exp(-epsilon))
        assert allowed_advantage(epsilon, delta) == pytest.approx(2 * right - 1)
        false = np.linspace(0, 1, 5001)
        best = max(allowed(epsilon, delta, float(x)) - float(x) for x in false)
        assert best == pytest.approx(allowed_advantage(epsilon, delta), abs=1e-3)

    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (4.0, 1e-5), (2.0, 0.01)])
    def test_exact_noise_touches_the_claim_and_never_crosses_it(self, epsilon: float, delta: float) -> None:
        mu = largest_mu(epsilon, delta)
        false = np.exp(np.linspace(math.log(1e-9), math.log(0.9), 4000))
        room = [allowed(epsilon, delta, float(x)) - float(special.ndtr(special.ndtri(x) + mu)) for x in false]
        assert min(room) == pytest.approx(0.0, abs=1e-5)
        assert min(room) > -1e-9


class TestPlacements:
    @pytest.mark.parametrize("setting", Setting)
    def test_no_pair_of_neighbours_is_told_apart_better(self, setting: Setting) -> None:
        cloak = setting.cloak()
        steepest = 0.0
        for rows in cloak.physics.steps().rows():
            each = np.abs(rows) / cloak.sigmas
            together = each.max(axis=1) if cloak.scope is Scope.SENSOR else np.sqrt((each**2).sum(axis=1))
            steepest = max(steepest, float(together.max()))
        assert separation(cloak, worst_neighbours(cloak)) == pytest.approx(cloak.alpha * steepest, rel=0.01)


class TestMeasuring:
    @pytest.mark.parametrize("setting", [Setting.LINE, Setting.DESIGNED, Setting.SENSOR])
    def test_ratios_are_those_of_simulated_releases_of_either_placement(self, setting: Setting) -> None:
        cloak = setting.cloak()
        found = worst_neighbours(cloak)
        ratios = ratios_of(cloak, found, 20, np.random.default_rng(1))
        far = shifts(cloak, found)
        visible = np.array([np.argmax(np.abs(far))]) if cloak.scope is Scope.SENSOR else np.arange(len(far))
        zero, one = (np.rint(sent / cloak.steps) * cloak.steps for sent in (found.zero, found.one))
        for readings, ratio in ((found.zero, ratios.zero), (found.one, ratios.one)):
            released = cloak.simulate(np.tile(readings, (20, 1)), rng=np.random.default_rng(1))
            logs = [
                norm.logpdf(released[:, visible], sent[visible], cloak.sigmas[visible]).sum(axis=1)
                for sent in (zero, one)
            ]
            np.testing.assert_allclose(ratio, logs[1] - logs[0], atol=1e-9)


@pytest.mark.parametrize("setting", Setting)
def test_a_kept_budget_keeps_the_advantage_and_an_ignored_one_does_not(setting: Setting) -> None:
    window = window_on(setting, 9, releases(setting, Calibration.EXACT, 1, 900, 1), 900, 1)
    single = separation(setting.cloak(), worst_neighbours(setting.cloak()))
    assert window.kept.mu == pytest.approx(single, rel=0.01)
    assert window.spent.mu == pytest.approx(3 * single)
    assert window.spent.measured > window.kept.measured + window.kept.error
