"""The best attack."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import special
from scipy.stats import norm

from cloakwork.lab import Agreement, Result, find, read_result
from cloakwork.lab.attack import (
    Measured,
    Placements,
    advantage,
    allowed,
    allowed_advantage,
    far_apart,
    separation,
    statistics,
    worst_neighbours,
)
from cloakwork.lab.attacks import FALSE, Setting, excess, moves_of, window_of
from cloakwork.lab.experiments import attacker
from cloakwork.lab.experiments.attacker import Attacks
from cloakwork.lab.scenes import flat_cloak, line, line_cloak
from cloakwork.measure import emd
from cloakwork.privacy import Calibration, Cloak, Profile, largest_mu


def run_small(seed: int = 1) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attacker, "QUICK_TRIALS", 300)
        patch.setattr(attacker, "QUICK_WINDOW_TRIALS", 60)
        return find("attacker").run(quick=True, seed=seed)


@pytest.fixture(scope="module")
def result() -> Result:
    return run_small()


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
    @pytest.mark.parametrize("make", [line_cloak, flat_cloak])
    def test_the_worst_neighbours_are_neighbours_and_differ_by_the_sensitivity(self, make: Callable[[], Cloak]) -> None:
        cloak = make()
        found = worst_neighbours(cloak)
        assert np.linalg.norm(found.one - found.zero) == pytest.approx(cloak.sensitivity, rel=1e-9)
        assert found.distance == pytest.approx(cloak.alpha)

    def test_part_of_a_source_that_moves_farther_is_as_far_in_all(self) -> None:
        cloak = flat_cloak()
        i, j = cloak.physics.joint_slope().pair
        before, after = np.zeros(400), np.zeros(400)
        before[i] = 1.0
        after[[i, j]] = 1 - 0.3 / 0.5, 0.3 / 0.5
        assert emd(before, after, cloak.physics.space) == pytest.approx(0.3)
        np.testing.assert_allclose(cloak.physics.matrix @ after, worst_neighbours(cloak).one, atol=1e-12)

    def test_the_separation_is_within_what_the_cloak_says(self) -> None:
        for cloak in (line_cloak(), flat_cloak(), line_cloak(Calibration.PAPER)):
            mu = separation(cloak, worst_neighbours(cloak))
            assert 0.97 * cloak.frame_mu < mu <= cloak.frame_mu

    def test_places_far_apart_are_the_worst_of_their_distance(self) -> None:
        found = far_apart(line(), 0.05)
        assert found is not None
        matrix = line().matrix
        largest = max(float(np.linalg.norm(matrix[:, i] - matrix[:, i + 5])) for i in range(95))
        assert np.linalg.norm(found.one - found.zero) == pytest.approx(largest)
        assert far_apart(line(), 0.055) is None

    def test_a_move_of_c_alpha_has_at_most_c_mu(self) -> None:
        for one in moves_of(Setting.LINE):
            base = separation(line_cloak(one.calibration), worst_neighbours(line_cloak(one.calibration)))
            assert one.mu <= one.times * base * 1.001


class TestMeasuring:
    def test_log_likelihood_ratios_are_those_of_the_normal(self) -> None:
        cloak = line_cloak()
        found = worst_neighbours(cloak)
        mu = separation(cloak, found)
        zero, one = statistics(cloak, found, 4000, 1, np.random.default_rng(1))
        assert zero.mean() == pytest.approx(-(mu**2) / 2, abs=4 * mu / math.sqrt(4000))
        assert one.mean() == pytest.approx(mu**2 / 2, abs=4 * mu / math.sqrt(4000))
        assert zero.std() == pytest.approx(mu, rel=0.06)

    def test_the_measured_advantage_is_the_exact_one(self) -> None:
        cloak = line_cloak()
        found = worst_neighbours(cloak)
        mu = separation(cloak, found)
        measured = Measured.of(*statistics(cloak, found, 4000, 1, np.random.default_rng(2)), mu)
        assert abs(measured.measured - measured.exact) < 4 * measured.error
        assert measured.error == pytest.approx(math.sqrt(2 * 0.22 / 4000), rel=0.1)

    def test_frames_together_say_more(self) -> None:
        cloak = line_cloak()
        found = worst_neighbours(cloak)
        zero, one = statistics(cloak, found, 400, 9, np.random.default_rng(3))
        mu = 3 * separation(cloak, found)
        assert abs(Measured.of(zero, one, mu).measured - advantage(mu)) < 0.1

    def test_the_same_placement_twice_tells_nothing(self) -> None:
        cloak = line_cloak()
        same = Placements(line().matrix[:, 3], line().matrix[:, 3], 0.0)
        assert separation(cloak, same) == 0
        assert advantage(0.0) == 0


def test_a_kept_budget_keeps_the_advantage_and_an_ignored_one_does_not() -> None:
    window = window_of(9, 150, 1)
    single = advantage(separation(line_cloak(), worst_neighbours(line_cloak())))
    assert window.kept.exact == pytest.approx(single, abs=0.01)
    assert window.spent.exact > 2 * single
    assert window.spent.measured > window.kept.measured + 0.2


def test_every_setting_is_attacked_with_both_noises(result: Result) -> None:
    for setting in Setting:
        ours, papers = (attacks_of(result).of(setting, calibration) for calibration in Calibration)
        assert papers.mu < ours.mu / 2
        assert ours.one_reading <= ours.all_readings.exact < ours.guaranteed
        assert Profile(ours.mu).delta(ours.epsilon) <= ours.delta
        assert len(ours.curve) == len(FALSE)
        assert list(ours.curve) == sorted(ours.curve)
        assert excess(ours) == pytest.approx(1.0, abs=0.03)


def test_verdicts_follow_the_numbers(result: Result) -> None:
    finding = attacks_of(result)
    assert {claim.verdict for claim in finding.claims()} == {Agreement.LOOSER}
    for factor, verdict in ((1.01, Agreement.WRONG), (0.95, Agreement.AGREES), (0.5, Agreement.LOOSER)):
        attacks = tuple(replace(one, mu=factor * largest_mu(one.epsilon, one.delta)) for one in finding.attacks)
        assert {claim.verdict for claim in replace(finding, attacks=attacks).claims()} == {verdict}


def test_the_same_seed_gives_the_same_numbers(result: Result) -> None:
    assert run_small() == result
    assert run_small(seed=2) != result


def test_runs_agree_with_each_other(result: Result) -> None:
    for one, two in zip(result.finding.measures(), run_small(seed=3).finding.measures(), strict=True):
        assert one.name == two.name
        assert one.agrees(two), one.name


def test_json_picture_and_words(result: Result, tmp_path: Path) -> None:
    assert read_result(json.dumps(result.to_json(), allow_nan=False)) == result
    result.draw(tmp_path / "attacker.png")
    assert (tmp_path / "attacker.png").stat().st_size > 20_000
    assert len(result.finding.words()) == 3
    for table in result.tables():
        assert all(len(row) == len(table.columns) for row in table.rows)
