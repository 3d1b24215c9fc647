"""Reach and strength come back from cloaked readings alone, with the errors of the exact likelihood."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from cloakwork.accuracy import Habits, simulated_day
from cloakwork.errors import InputError
from cloakwork.fitting import fit_cloaked
from cloakwork.fitting.cloaked_fit import noise_of
from cloakwork.fitting.responses import Responses
from cloakwork.privacy import Cloak
from cloakwork.readings import Frame, site_tracker
from cloakwork.recovery import Tracker
from cloakwork.recovery.path_steps import predict
from cloakwork.site import Site, parse_site
from tests.fitting.walks import STATED, true_plan

REACH, STRENGTH, FOOTPRINT = 1.6, 5.0, 0.3
TEXT = (
    STATED.replace("sensors = 12", "sensors = 24").replace("epsilon = 4.0", "epsilon = 12.0")
    + 'window = "10min"\nreadings_per_window = 10\n'
)
DRIFT = '\n[drift]\nsensor = 0.1\nall = 1.0\nover = "2h"\n'


def stated(reach: float, strength: float, people: int, more: str = "") -> Site:
    text = TEXT.replace("reach = 1.0 ", f"reach = {REACH * reach:.4g} ") + more
    return parse_site(text.replace("strength = 3.0 ", f"max_count = {people}\nstrength = {STRENGTH * strength:.4g} "))


def cloaked(site: Site, cloak: Cloak, frames: int, people: int, seed: int) -> list[Frame]:
    """Frames of people in the true flat, a minute apart, with the drift of the site."""
    truth = true_plan(site, REACH, STRENGTH, FOOTPRINT)
    habits = Habits(sit=(300.0, 1500.0), away=None if people == 1 else (1800.0, 5400.0))
    day = simulated_day(truth.space, max(people, 1), seed=seed, hours=frames / 60, habits=habits)
    places = day.places_at(60.0 * np.arange(frames))
    columns = np.concatenate([truth.matrix.T, np.zeros((1, truth.sensors))])
    true = columns[places].sum(axis=1) * (people > 0)
    if site.drift is not None:
        true = true + site.drift.on(truth).simulate(60.0 * np.arange(frames), np.random.default_rng([seed, 1]))
    steps = cloak.to_steps(cloak.simulate(true + site.baselines, rng=np.random.default_rng(seed)))
    return [Frame(60_000 * k, steps[k], np.ones(truth.sensors, dtype=bool)) for k in range(frames)]


class Exact:
    """The marginal likelihood of one source that moves from cell to cell, by summing over all its paths."""

    def __init__(self, site: Site, cloak: Cloak, frames: Sequence[Frame]) -> None:
        self.model, self.cloak = Responses.of_site(site), cloak
        self.readings = np.array([frame.steps * cloak.steps - site.baselines for frame in frames])
        tracker = site_tracker(site, cloak)
        assert isinstance(tracker, Tracker)
        n = tracker.sampler.places
        self.moves = np.empty((2 * n + 1, 2 * n + 1), dtype=np.float32)
        predict(tracker.moves.over(60.0).step, np.eye(2 * n + 1, dtype=np.float32), self.moves)
        first = np.append(tracker.sampler.odds[0] * tracker.sampler.first, 1.0)
        self.first = first / first.sum()

    def __call__(self, at: NDArray[np.float64]) -> float:
        """Log likelihood at (log reach, log strength, offset)."""
        steps = self.cloak.steps**2 / 6 + (self.cloak.resolution or 0.0) ** 2 / 12
        noise = np.sqrt(self.cloak.total_sigmas**2 + steps)
        columns = math.exp(at[1]) * self.model.matrix(math.exp(at[0]), FOOTPRINT).T / noise
        whole = np.concatenate([columns, columns, np.zeros((1, len(noise)))])
        rest = (self.readings - at[2]) / noise
        gains = rest @ whole.T - (whole**2).sum(axis=1) / 2 - (rest**2).sum(axis=1)[:, None] / 2
        total, law = 0.0, self.first
        for step, gain in enumerate(gains):
            law = law if step == 0 else law @ self.moves
            law = law * np.exp(gain - gain.max())
            total += gain.max() + math.log(law.sum())
            law = law / law.sum()
        return float(total)


def test_the_likelihood_counts_all_noise_and_both_steps() -> None:
    text = TEXT.replace("alpha = 0.2", "alpha = 0.02\nresolution = 0.25\nown_noise = 0.15\ncount_own_noise = true")
    site = parse_site(text)
    cloak = site.cloak()
    released = cloak.simulate(_hardware(site, 4_000), rng=np.random.default_rng(1))
    np.testing.assert_allclose((released - site.baselines).std(axis=0), noise_of(cloak), rtol=0.06)
    assert (noise_of(cloak) > 1.05 * cloak.sigmas).all()


def _hardware(site: Site, frames: int) -> NDArray[np.float64]:
    """Readings of an empty flat with own noise, rounded by the hardware."""
    rng = np.random.default_rng(0)
    own = site.baselines + 0.1 + 0.15 * rng.standard_normal((frames, len(site.baselines)))
    return np.asarray(0.25 * np.rint(own / 0.25))


def test_one_source_is_fitted_as_by_the_exact_likelihood() -> None:
    site = stated(1.3, 0.7, 1)
    cloak = site.cloak()
    frames = cloaked(site, cloak, 120, 1, seed=3)
    fit, exact = fit_cloaked(site, cloak, frames), Exact(site, cloak, frames)
    start = [math.log(REACH), math.log(STRENGTH), 0.0]
    best = optimize.fmin(lambda at: -exact(np.asarray(at)), start, xtol=1e-4, ftol=1e-4, disp=False)  # type: ignore[misc]
    found = np.array([math.log(fit.reach.value), math.log(fit.strength.value), fit.offset.value])
    widths = [math.log(fit.reach.high / fit.reach.low), math.log(fit.strength.high / fit.strength.low)]
    errors = np.array([*widths, fit.offset.high - fit.offset.low]) / (2 * 1.645)
    assert (abs(found - best) < errors / 2).all(), (found, best, errors)
    h = errors / 2
    bends = np.array([[_bend(exact, best, h, i, j) for j in range(3)] for i in range(3)])
    true_errors = np.sqrt(np.diag(np.linalg.inv(-bends)))
    np.testing.assert_allclose(errors, true_errors, rtol=0.3)


def _bend(exact: Exact, at: NDArray[np.float64], h: NDArray[np.float64], i: int, j: int) -> float:
    a, b = np.eye(3)[i] * h, np.eye(3)[j] * h
    return float((exact(at + a + b) - exact(at + a - b) - exact(at - a + b) + exact(at - a - b)) / (4 * h[i] * h[j]))


def test_reach_and_strength_that_are_30_percent_off_come_back() -> None:
    site = stated(1.3, 0.7, 2)
    cloak = site.cloak()
    fit = fit_cloaked(site, cloak, cloaked(site, cloak, 240, 2, seed=1))
    assert fit.reach.least < REACH < fit.reach.most
    assert fit.strength.least < STRENGTH < fit.strength.most
    assert abs(fit.reach.value / REACH - 1) < 0.1
    assert abs(fit.strength.value / STRENGTH - 1) < 0.1
    assert fit.reach.told
    assert fit.agree
    assert len(fit.ends) == 2
    assert not replace(fit, ends=(fit.ends[0], (1.3 * fit.reach.high, fit.ends[1][1]))).agree


@pytest.mark.parametrize("more", ["", DRIFT])
def test_an_interrupted_fit_goes_on_to_the_same_result(more: str, tmp_path: Path) -> None:
    site = stated(1.3, 0.7, 1, more)
    cloak = site.cloak()
    frames = cloaked(site, cloak, 70, 1, seed=1)
    whole, kept, done = fit_cloaked(site, cloak, frames), tmp_path / "fit", []

    def interrupt(step: int, _: int) -> None:
        done.append(step)
        if step in {3, 26, 40}:  # in the first search, at its end, in the second
            raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            fit_cloaked(site, cloak, frames, kept=kept, progress=interrupt)
    parts = fit_cloaked(site, cloak, frames, kept=kept, progress=interrupt)
    assert done == list(range(1, 53)), "no step is taken twice"
    assert (parts.reach, parts.strength, parts.offset, parts.ends) == (
        whole.reach,
        whole.strength,
        whole.offset,
        whole.ends,
    )
    assert parts.people == whole.people
    with pytest.raises(InputError, match="this fit"):
        fit_cloaked(site, cloak, frames[1:], kept=kept)
    kept.write_bytes(kept.read_bytes()[:1000])
    with pytest.raises(InputError, match="this fit"):
        fit_cloaked(site, cloak, frames, kept=kept)


def test_readings_that_drift_are_fitted_with_the_offsets_integrated_out() -> None:
    calm, site = stated(1.3, 0.7, 1), stated(1.3, 0.7, 1, DRIFT)
    cloak = site.cloak()
    frames = cloaked(site, cloak, 300, 1, seed=2)
    fit, ignored = fit_cloaked(site, cloak, frames), fit_cloaked(calm, cloak, frames)
    # not that the intervals hold: docs/drift.md says how often they do
    assert max(abs(fit.reach.value / REACH - 1), abs(fit.strength.value / STRENGTH - 1)) < 0.15
    assert ignored.reach.value > 2 * REACH


def test_an_empty_flat_tells_nothing() -> None:
    site = stated(1.0, 1.0, 1)
    cloak = site.cloak()
    fit = fit_cloaked(site, cloak, cloaked(site, cloak, 90, 0, seed=1))
    assert not (fit.reach.told and fit.strength.told)


def test_too_few_complete_frames_are_refused() -> None:
    site = stated(1.0, 1.0, 1)
    cloak = site.cloak()
    frames = cloaked(site, cloak, 80, 1, seed=1)
    gaps = [Frame(f.time, f.steps, np.arange(24) != k % 24) for k, f in enumerate(frames)]
    with pytest.raises(InputError) as refusal:
        fit_cloaked(site, cloak, [*frames[:30], *gaps[30:]])
    assert refusal.value.frames == 30
