"""The best attack."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from scipy.stats import norm

from cloakwork.accuracy import emd
from cloakwork.privacy import Cloak, Profile, Scope, largest_mu
from papers import Agreement, Result
from papers.attack import (
    FALSE,
    Measured,
    Placements,
    Setting,
    advantage,
    allowed,
    allowed_advantage,
    far_apart,
    moves_of,
    ratios_of,
    releases,
    separation,
    shifts,
    window_on,
    worst_neighbours,
)
from papers.calibration import Calibration
from papers.experiments.attacker import Attacks
from papers.experiments.vicinities import flat_cloak
from papers.trials import Setting as LineSetting
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("attacker")


def attacks_of(result: Result) -> Attacks:
    assert isinstance(result.finding, Attacks)
    return result.finding


class TestClosedForms:
    def test_advantage_is_the_largest_difference_of_the_two_rates(self) -> None:
        cuts = np.linspace(-5, 6, 2001)
        for mu in (0.2, 1.0, 3.0):
            assert advantage(mu) == pytest.approx(float((norm.sf(cuts - mu) - norm.sf(cuts)).max()), abs=1e-5)

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
    def test_the_worst_neighbours_spend_all_that_the_noise_allows_but_for_the_rounding(self, setting: Setting) -> None:
        for calibration in Calibration:
            cloak = setting.cloak(calibration)
            found = worst_neighbours(cloak)
            assert 0.97 * cloak.frame_mu < separation(cloak, found) <= cloak.frame_mu

    @pytest.mark.parametrize("setting", Setting)
    def test_no_pair_of_neighbours_is_told_apart_better(self, setting: Setting) -> None:
        cloak = setting.cloak()
        steepest = 0.0
        for rows in cloak.physics.steps().rows():
            each = np.abs(rows) / cloak.sigmas
            together = each.max(axis=1) if cloak.scope is Scope.SENSOR else np.sqrt((each**2).sum(axis=1))
            steepest = max(steepest, float(together.max()))
        assert separation(cloak, worst_neighbours(cloak)) == pytest.approx(cloak.alpha * steepest, rel=0.01)

    def test_unequal_noise_has_its_own_worst_pair(self) -> None:
        """Where sensors are loud, moves near them are hidden best."""
        physics = flat_cloak().physics
        i, j = physics.moves().steepest().pair
        moved = np.abs(physics.matrix[:, i] - physics.matrix[:, j])
        sigma = np.where(moved > 0.01 * moved.max(), 50.0, 5.0)
        cloak = Cloak(physics, epsilon=4.0, delta=1e-5, alpha=0.3, sigma=sigma)
        share = 0.3 / 0.5
        steepest = Placements(physics.matrix[:, i], (1 - share) * physics.matrix[:, i] + share * physics.matrix[:, j])
        assert separation(cloak, worst_neighbours(cloak)) > 5 * separation(cloak, steepest)

    def test_part_of_a_source_that_moves_farther_is_as_far_in_all(self) -> None:
        cloak = flat_cloak()
        i, j = cloak.physics.moves().steepest().pair
        before, after = np.zeros(400), np.zeros(400)
        before[i] = 1.0
        after[[i, j]] = 1 - 0.3 / 0.5, 0.3 / 0.5
        assert emd(before, after, cloak.physics.space) == pytest.approx(0.3)
        np.testing.assert_allclose(cloak.physics.matrix @ after, worst_neighbours(cloak).one, atol=1e-12)

    def test_who_sees_one_sensor_sees_the_one_that_tells_most(self) -> None:
        cloak = Setting.SENSOR.cloak()
        found = worst_neighbours(cloak)
        assert separation(cloak, found) == np.abs(shifts(cloak, found)).max()
        assert np.linalg.norm(shifts(cloak, found)) > 2 * separation(cloak, found)

    def test_places_far_apart_are_the_worst_of_their_distance(self) -> None:
        found = far_apart(LineSetting().cloak(), 0.05)
        assert found is not None
        matrix = LineSetting().line.matrix
        largest = max(float(np.linalg.norm(matrix[:, i] - matrix[:, i + 5])) for i in range(95))
        assert np.linalg.norm(found.one - found.zero) == pytest.approx(largest)
        assert far_apart(LineSetting().cloak(), 0.055) is None

    def test_a_move_of_c_alpha_has_at_most_c_mu(self) -> None:
        for one in moves_of(Setting.LINE):
            base = separation(
                LineSetting().cloak(one.calibration), worst_neighbours(LineSetting().cloak(one.calibration))
            )
            assert one.mu <= one.times * base * 1.001


class TestMeasuring:
    def test_log_likelihood_ratios_are_those_of_the_normal(self) -> None:
        cloak = LineSetting().cloak()
        found = worst_neighbours(cloak)
        mu = separation(cloak, found)
        ratios = ratios_of(cloak, found, 5000, np.random.default_rng(1))
        assert ratios.zero.mean() == pytest.approx(-(mu**2) / 2, abs=4 * mu / math.sqrt(5000))
        assert ratios.one.mean() == pytest.approx(mu**2 / 2, abs=4 * mu / math.sqrt(5000))
        assert ratios.zero.std() == pytest.approx(mu, rel=0.06)

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

    def test_the_measured_advantage_is_the_exact_one(self) -> None:
        cloak = LineSetting().cloak()
        found = worst_neighbours(cloak)
        measured = Measured.of(ratios_of(cloak, found, 4000, np.random.default_rng(2)), separation(cloak, found))
        assert abs(measured.measured - measured.exact) < 4 * measured.error
        assert measured.error == pytest.approx(math.sqrt(0.352 * 0.648 / 4000), rel=0.1)

    def test_frames_together_say_more(self) -> None:
        cloak = LineSetting().cloak()
        found = worst_neighbours(cloak)
        ratios = ratios_of(cloak, found, 3605, np.random.default_rng(3)).together(9)
        assert len(ratios.zero) == len(ratios.one) == 400
        measured = Measured.of(ratios, 3 * separation(cloak, found))
        assert abs(measured.measured - measured.exact) < 4 * measured.error

    def test_the_same_placement_twice_tells_nothing(self) -> None:
        cloak = LineSetting().cloak()
        same = Placements(LineSetting().line.matrix[:, 3], LineSetting().line.matrix[:, 3])
        assert separation(cloak, same) == 0
        assert advantage(0.0) == 0


@pytest.mark.parametrize("setting", Setting)
def test_a_kept_budget_keeps_the_advantage_and_an_ignored_one_does_not(setting: Setting) -> None:
    window = window_on(setting, 9, releases(setting, Calibration.EXACT, 1, 900, 1), 900, 1)
    single = separation(setting.cloak(), worst_neighbours(setting.cloak()))
    assert window.kept.mu == pytest.approx(single, rel=0.01)
    assert window.spent.mu == pytest.approx(3 * single)
    assert window.spent.measured > window.kept.measured + window.kept.error


def test_every_setting_is_attacked_with_both_noises(result: Result) -> None:
    for setting in Setting:
        ours, papers = (attacks_of(result).of(setting, calibration) for calibration in Calibration)
        assert papers.found.mu < ours.found.mu / 2
        assert ours.one_sensor <= ours.found.exact <= ours.all_sensors
        assert ours.found.exact < ours.guaranteed
        assert Profile(ours.found.mu).delta(ours.epsilon) <= ours.delta
        assert len(ours.curve) == len(FALSE)
        assert list(ours.curve) == sorted(ours.curve)
        assert ours.excess == pytest.approx(1.0, abs=0.03)
    assert [one.setting for one in attacks_of(result).whole] == list(Setting)


def with_shift(finding: Attacks, factor: float) -> Attacks:
    """All attacks with so many times the shift that their claims allow."""
    attacks = tuple(
        replace(one, found=replace(one.found, mu=factor * largest_mu(one.epsilon, one.delta)))
        for one in finding.attacks
    )
    return replace(finding, attacks=attacks)


def test_verdicts_follow_the_numbers(result: Result) -> None:
    finding = attacks_of(result)
    assert {claim.verdict for claim in finding.claims()} == {Agreement.LOOSER}
    for factor, verdict in ((1.01, Agreement.WRONG), (0.95, Agreement.AGREES), (0.5, Agreement.LOOSER)):
        assert {claim.verdict for claim in with_shift(finding, factor).claims()} == {verdict}


def test_too_little_noise_misses_the_goal(result: Result) -> None:
    finding = attacks_of(result)
    assert [goal.met for goal in finding.goals()] == [True]
    short = with_shift(finding, 1.05)
    assert [goal.met for goal in short.goals()] == [False]
