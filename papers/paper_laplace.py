"""The Fourier mechanism of Fawaz, Muthukrishnan and Nikolov, repaired: Laplace noise on real coefficients."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import fft

from cloakwork._checks import FloatArray, IntArray, frozen, rounded_up
from cloakwork.errors import CalibrationError, InputError
from cloakwork.privacy import NoiseTable, WordSource, laplace_table, table_ratio
from cloakwork.privacy.laplace_losses import laplace_delta, quick_delta
from cloakwork.series.release_noise import ReleaseClaim, ReleaseNoise, draw_from, table_loss
from cloakwork.series.strategies import Strategy, Task, ideal_cost

LONGEST = 1024  # the exact privacy of more coefficients takes longer than a few seconds to compute
_NORM = 2.0**30  # of each column: rounding is then far below the noise


@dataclass(frozen=True)
class PaperLaplace:
    """Laplace noise on the Fourier coefficients, of the size that the paper prescribes; refused if not private.

    `Fourier()` is better in every respect. This mechanism is for comparison.

    Notes
    -----
    Fawaz, Muthukrishnan and Nikolov, Algorithm 1, adds to each unitary Fourier coefficient of x with h^_i != 0 Laplace
    noise of scale sqrt(gamma / |h^_i|), gamma = 2 ln(1/delta) ||h^||_1 / (epsilon^2 N). As printed it is not private:
    coefficients are complex and the noise is real, so imaginary parts are published unchanged. Here the noise is on the
    coefficients in the real Fourier basis: a constant, cosines and sines. Even so the proof drops a term, and at
    (10, 0.01) delta is up to 3.3 times the claim, for 256 values. So delta is computed exactly for each neighbour, and
    a claim that is not met is refused.

    >>> from cloakwork.series import WindowSum, publish
    >>> published = publish([3, 0, 4, 1, 7, 0, 2, 5], WindowSum(2), epsilon=1.0, delta=1e-6, mechanism=PaperLaplace())
    >>> round(published.expected_mse**0.5, 1)
    9.5
    """

    def strategy(self, task: Task) -> Strategy:
        if task.period > LONGEST:
            raise InputError(
                f"PaperLaplace() needs {task.period} coefficients here, and its exact privacy is computed for up to "
                f"{LONGEST}: use Fourier(), which has no such limit and less noise.",
                coefficients=task.period,
                allowed=LONGEST,
            )
        return BasisStrategy(task)

    def noise(self, strategy: Strategy, claim: ReleaseClaim) -> ReleaseNoise:
        return LaplaceNoise.meeting(strategy, claim)


@dataclass(frozen=True, eq=False)
class BasisStrategy:
    """Real Fourier coefficients, each times the root of the weight of its frequency, rounded to whole weights.

    `weights` has a row for each released number and a column for each value of the series.

    Notes
    -----
    With the real Fourier basis R and the magnitudes H_i of the filters, the weights are sqrt(H_i) R_ij, scaled to
    columns of norm 2^30, and rounded. Outputs ignore the rounding: each released number is then off by at most
    sum |x| / 2, and its noise has a scale of about 2^30.
    """

    task: Task
    weights: IntArray = field(init=False)
    variances: FloatArray = field(init=False)
    _answers: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        basis, frequencies = real_basis(self.task.period)
        worth = self.task.magnitude[frequencies]
        scale = _NORM * np.sqrt(self.task.period / worth.sum() * worth)
        whole = np.rint(scale[:, None] * basis[:, : self.task.n]).astype(np.int64)
        used = (whole != 0).any(axis=1)
        answers = self._answers_of(basis[used] / scale[used, None])
        object.__setattr__(self, "weights", frozen(whole[used]))
        object.__setattr__(self, "_answers", frozen(answers))
        object.__setattr__(self, "variances", frozen((answers**2).sum(axis=2)))

    def _answers_of(self, back: FloatArray) -> FloatArray:
        """The contribution of each released number to each output, shape (filters, n, length)."""
        spectra = fft.rfft(back, axis=1)
        outputs = fft.irfft(self.task.spectra[:, None, :] * spectra, self.task.period, axis=2)
        return np.ascontiguousarray(np.swapaxes(outputs[:, :, : self.task.n], 1, 2) * self.task.scales[:, :, None])

    @property
    def length(self) -> int:
        return len(self.weights)

    @property
    def ideal(self) -> float:
        return ideal_cost(self.task)

    def applied(self, steps: IntArray) -> IntArray:
        return np.asarray(steps @ self.weights.T)

    def outputs(self, released: FloatArray) -> FloatArray:
        return np.asarray(released @ np.swapaxes(self._answers, 1, 2))


@dataclass(frozen=True, eq=False)
class LaplaceNoise:
    """Rounded Laplace noise from exact tables; `shifts` are those of all neighbours, in scales of the noise.

    Notes
    -----
    The release is whole, so B x + round(L) equals round(B x + L): post-processing of the Laplace mechanism. A change of
    `units` moves it by a mixture of columns of B, times units. Now 1 - delta is the integral of
    min(p(r - v), e^epsilon p(r)) over r, where p is the density of the noise and v the shift; that is log-concave in v
    and r together, and so 1 - delta is log-concave in v (Prekopa): delta is largest at a column. It depends on the
    absolute values of v alone and grows with each.
    """

    table: NoiseTable
    shifts: FloatArray
    draws: int
    ideal: float
    shift: float

    @classmethod
    def meeting(cls, strategy: Strategy, claim: ReleaseClaim) -> "LaplaceNoise":
        """The noise of the paper; raises a `CalibrationError` if it does not meet the claim."""
        wide = math.sqrt(2 * math.log(1 / claim.delta)) / claim.epsilon
        table = laplace_table(table_ratio(claim.units * _NORM * wide))
        different = np.unique(np.sort(np.abs(strategy.weights), axis=0), axis=1)
        shifts = different.astype(np.float64) * (claim.units / table.ratio * (1 + 2.0**-50))
        noise = cls(table, frozen(shifts), strategy.length * claim.series, 2 * wide**2, claim.units * _NORM)
        loss = noise.loss(claim.epsilon)
        true_delta = largest_delta(shifts, claim.epsilon, ignored=max(claim.delta - loss, 0.0)) + loss
        if true_delta > claim.delta:
            raise CalibrationError(
                f"epsilon={claim.epsilon:g} with delta={claim.delta:g}: the noise of the paper has a delta of "
                f"{rounded_up(true_delta)} for this filter. Use Fourier().",
                epsilon=claim.epsilon,
                delta=claim.delta,
                true_delta=true_delta,
            )
        return noise

    @property
    def variance(self) -> float:
        """Variance of one draw, including what rounding adds."""
        return 2 * self.table.ratio**2 + 1 / 12

    def draw(self, count: int, words: WordSource) -> IntArray:
        return draw_from(self.table, count, words)

    def delta(self, epsilon: float) -> float:
        return min(1.0, largest_delta(self.shifts, epsilon) + self.loss(epsilon))

    def loss(self, epsilon: float) -> float:
        """The amount that the error of the tables adds to delta."""
        return table_loss(epsilon, draws=self.draws, error=self.table.error)


def largest_delta(shifts: FloatArray, epsilon: float, *, ignored: float = 0.0) -> float:
    """The largest delta at `epsilon` of all columns of `shifts`, rounded up by about 1 %.

    Parameters
    ----------
    shifts
        How far each released number moves between neighbours, in scales of its Laplace noise: shape (numbers,
        neighbours).
    epsilon
        0 or above.
    ignored
        Neighbours with a delta of certainly no more than this may be skipped, which is quicker.
    """
    moving = [column[column > 0] for column in np.abs(shifts).T]
    bounds = [quick_delta(column, epsilon) for column in moving]
    worst = 0.0
    for which in np.argsort(bounds)[::-1]:
        if bounds[which] <= max(worst, ignored):
            break
        worst = max(worst, laplace_delta(moving[which], epsilon))
    return worst


def real_basis(n: int) -> tuple[FloatArray, IntArray]:
    """The orthonormal real Fourier basis in rows, shape (n, n), and the frequency of each row."""
    places = np.outer(np.arange(n // 2 + 1), np.arange(n)) % n
    turns = np.minimum(places, n - places) * (2 * np.pi / n)  # symmetric to the last bit
    sines = np.sin(turns) * np.where(2 * places > n, -1.0, 1.0)
    rows = np.concatenate([np.cos(turns), sines[1 : (n + 1) // 2]])
    frequencies = np.concatenate([np.arange(n // 2 + 1), np.arange(1, (n + 1) // 2)])
    twice = (frequencies != 0) & (2 * frequencies != n)
    return rows * np.sqrt(np.where(twice, 2.0, 1.0) / n)[:, None], frequencies
