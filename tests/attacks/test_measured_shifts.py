"""Attack: real radio moves that shift the readings further than a smooth map allows.

The noise has the sensitivity that the measurements need. The fading is simulated here, so its real shifts are known;
the recordings are real, and their noise is counted against the claim.
"""

import numpy as np

import cloakwork as cw
from cloakwork.fitting import MeasuredShifts, measured_shifts
from tests.attacks.conftest import Attack
from tests.fitting.radio import flat, office

WAVE = 0.125  # metres, at 2.4 GHz


def compare(
    attack: Attack, shifts: MeasuredShifts, alpha: float, real: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> None:
    """Compare real shifts within `alpha` with what the noise for the offered sensitivity hides."""
    needed = shifts.sensitivity(alpha)
    cloak = cw.Cloak(shifts.cloak.physics, epsilon=2.0, delta=1e-5, alpha=needed / shifts.slope)
    attack.compare(real / cloak.sigma, cloak.allowance.cost(cloak.sigmas, 0 * cloak.roundings))


def test_simulated_fading(attack: Attack, rng: np.random.Generator) -> None:
    """Fading of a few decibels over a smooth map, read with noise at pairs of near positions."""
    model = flat().model
    cloak = cw.Cloak(model, epsilon=2.0, delta=1e-5, alpha=0.1)
    for _ in range(attack.size(5, 100)):
        spots = model.space.places[rng.choice(len(model.space), 30, replace=False)]
        turns, lengths = rng.uniform(0, 2 * np.pi, 30), 0.1 * np.sqrt(rng.random((30, 1)))
        near = spots + lengths * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        at = np.concatenate([spots, near])
        angles, phases = rng.uniform(0, 2 * np.pi, (2, 6, 40))
        waves = 2 * np.pi / WAVE * (at[:, :1, None] * np.cos(angles) + at[:, 1:, None] * np.sin(angles))
        field = np.exp(1j * (waves + phases)).sum(axis=2) / np.sqrt(40)
        nearest = [int(((model.space.places - each) ** 2).sum(axis=1).argmin()) for each in at]
        true = model.matrix.T[nearest] + 20 * np.log10(np.maximum(abs(field), 0.1))
        noise = rng.uniform(0.2, 1.5)
        shifts = measured_shifts(cloak, at, true + noise * rng.standard_normal(true.shape), variances=noise**2)
        alpha = float(rng.uniform(0.05, 0.5))
        within = shifts.ends[shifts.distances <= alpha]
        compare(attack, shifts, alpha, np.linalg.norm(true[within[:, 0]] - true[within[:, 1]], axis=1))


def test_recorded_shifts(attack: Attack) -> None:
    """Recorded Bluetooth signals of a flat and of an office, with the noise of the measurement counted as a shift."""
    for recording in (flat(), office()):
        for alpha in (0.1, 0.2, 0.35, 0.6):
            shifts = recording.shifts(alpha)
            compare(attack, shifts, alpha, np.sqrt(shifts.squares[shifts.distances <= alpha, 0]))
