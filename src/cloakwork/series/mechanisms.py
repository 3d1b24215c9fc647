"""Mechanisms: how to share the noise among the frequencies, or the times, of a series."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import fft

from cloakwork._checks import FloatArray, IntArray, as_number, count, describe_argument
from cloakwork.errors import InputError
from cloakwork.series.convolution import inverse, product, square_root
from cloakwork.series.release_noise import GaussianNoise, ReleaseClaim, ReleaseNoise
from cloakwork.series.strategies import CausalStrategy, CircularStrategy, Strategy, Task, finest

_FLOOR = 1e-6  # of the mean weight: frequencies of lower weight are released with this one
_LONG = 1 << 16
_FINENESS = 64  # points on the unit circle for each coefficient
_FEWEST_POINTS, _MOST_POINTS = 1 << 12, 1 << 22
_SMALLEST_SIZE = 1e-9  # of the largest magnitude; smaller ones are raised to it


class Mechanism(Protocol):
    """Chooses a strategy for a task, and the noise for a claim."""

    def strategy(self, task: Task) -> Strategy:
        """Choose what to release; raises an `InputError` if this mechanism does not serve the task."""

    def noise(self, strategy: Strategy, claim: ReleaseClaim) -> ReleaseNoise:
        """The noise with which the strategy meets the claim."""


@dataclass(frozen=True)
class Fourier:
    """Noise with a variance inversely proportional to the weight of each frequency: optimal on a circle.

    Notes
    -----
    With unnormalised Fourier coefficients H_i of the filter, weights of spectrum W_i = sqrt |H_i| have the norm
    ||w||^2 = (1/N) sum |H_i|, and their answers have the variance (1/N) sum |H_i|^2 / |W_i|^2. At noise
    sigma = ||w|| / mu the mean squared error is ((1/N) sum |H_i|)^2 / mu^2: by Cauchy and Schwarz no other W does
    better. In the unitary coefficients h^ of Fawaz, Muthukrishnan and Nikolov this is ||h^||_1^2 / (N mu^2).

    >>> from cloakwork.series import Trend, publish
    >>> published = publish([3, 0, 4, 1, 7, 0, 2, 5], Trend(3), epsilon=1.0, delta=1e-6, mechanism=Fourier())
    >>> round(published.expected_mse**0.5, 1)
    2.3
    """

    def strategy(self, task: Task) -> Strategy:
        magnitude = task.magnitude
        root = np.sqrt(np.where(magnitude > 0, np.maximum(magnitude, _FLOOR * magnitude.mean()), 0.0))
        return finest(fft.irfft(root, task.period), lambda weights: CircularStrategy(task, weights))

    def noise(self, strategy: Strategy, claim: ReleaseClaim) -> ReleaseNoise:
        return GaussianNoise.meeting(strategy, claim)


@dataclass(frozen=True)
class SquareRoot:
    """Releases the causal square root of the filter: the mechanism for data that arrives over time.

    `band` keeps only this number of coefficients of the root, so a value is remembered that long. `damping` multiplies
    coefficient k by damping^k, which moves zeros away from the unit circle.

    Notes
    -----
    Any whole w with w_0 > 0 can serve as a strategy: the outputs (h / w) * r follow from the release r by a recursion
    that looks as far back as w and h do. The error is ||w||^2 ||h / w||^2 in the long run: at least (mean |H|)^2 on the
    unit circle by Cauchy and Schwarz, with equality for |W|^2 = |H|. The square root of h as a power series is such a
    w if h has no zeros within the circle. Otherwise it grows without bound, and the mechanism uses the root of the
    filter with the same |H| and no such zeros.

    The lower triangular Toeplitz matrix of the filter is then the product of two such matrices (Henzinger, Upadhyay and
    Upadhyay; for running sums, Fichtenberger, Henzinger and Upadhyay).

    A truncated root stays within a few per cent of the best once `band` is a few times the memory of the filter; for
    running sums, once it is a fair part of the horizon (Kalinin and Lampert).

    >>> from cloakwork.series import RunningSum, publish
    >>> published = publish([3, 0, 4, 1, 7, 0, 2, 5], RunningSum(), epsilon=1.0, delta=1e-6, mechanism=SquareRoot())
    >>> round(published.expected_mse**0.5, 1)
    6.7
    """

    band: int | None = None
    damping: float = 1.0

    def __post_init__(self) -> None:
        if self.band is not None:
            count("band", self.band)
        if not 0 < as_number("damping", self.damping) <= 1:
            raise InputError(f"damping={self.damping!r}: give a number above 0, up to 1.", damping=self.damping)

    def strategy(self, task: Task) -> Strategy:
        if task.circular or len(task.taps) != 1 or task.taps[0].first != 0:
            raise InputError(
                "SquareRoot() serves a single causal filter that starts at lag 0: use Fourier() for others."
            )
        values = task.taps[0].values
        size = task.n if self.band is None else min(self.band, task.n)
        roots = [root * self.damping ** np.arange(size) for root in _roots(values, size)]
        costs = {_cost(values, root, task): root for root in roots}
        ideal = min(costs)
        return finest(costs[ideal], lambda weights: CausalStrategy(task, weights, ideal))

    def noise(self, strategy: Strategy, claim: ReleaseClaim) -> ReleaseNoise:
        return GaussianNoise.meeting(strategy, claim)


@dataclass(frozen=True)
class Least:
    """`Fourier` or `SquareRoot`, whichever has the smaller error; that depends on the filter alone, not on data.

    Long series use `Fourier`, which is quicker to compute; there the two differ by at most 3 %.
    """

    def strategy(self, task: Task) -> Strategy:
        first = Fourier().strategy(task)
        if task.n > _LONG:
            return first
        try:
            second = SquareRoot().strategy(task)
        except InputError:
            return first
        return min(first, second, key=lambda strategy: strategy.ideal)

    def noise(self, strategy: Strategy, claim: ReleaseClaim) -> ReleaseNoise:
        return GaussianNoise.meeting(strategy, claim)


def check_mechanism(mechanism: Any) -> Mechanism:
    """Return a mechanism, by default the best for each task; refuse anything else."""
    if mechanism is None:
        return Least()
    has_all = callable(getattr(mechanism, "strategy", None)) and callable(getattr(mechanism, "noise", None))
    if isinstance(mechanism, type) or not has_all:
        raise InputError(
            f"mechanism={describe_argument(mechanism)}: give an object such as cloakwork.Fourier() or "
            "cloakwork.SquareRoot(), or leave it out."
        )
    checked: Mechanism = mechanism
    return checked


def minimum_phase(values: FloatArray) -> FloatArray:
    """The coefficients with the same magnitude at each frequency and no zeros within the unit circle; same length.

    >>> minimum_phase(np.array([1.0, 3.0])).round(6).tolist()
    [3.0, 1.0]

    Notes
    -----
    The logarithm of such a function has no negative frequencies on the circle; its real part is log |H|.
    """
    size = _points(len(values))
    sizes = np.abs(fft.rfft(values, size))
    logs = fft.irfft(np.log(np.maximum(sizes, _SMALLEST_SIZE * sizes.max())), size)
    logs[1 : size // 2] *= 2
    logs[size // 2 + 1 :] = 0.0
    return np.asarray(fft.irfft(np.exp(fft.rfft(logs)), size)[: len(values)])


def forgets(weights: IntArray) -> bool:
    """Whether all zeros of w_0 + w_1 z + ... lie outside the unit circle, so that a division by it forgets the past.

    Notes
    -----
    The number of zeros within is the winding number of W(e^{i t}) around 0 (the argument principle). The grid is so
    fine that W cannot wind around 0 between two points: from the nearest one it changes by at most sum k |w_k| times
    half their distance. If that is not certain, the answer is no.
    """
    whole = weights.astype(np.float64)
    size = _points(len(whole))
    circle = fft.fft(whole, size)
    unseen = np.pi / size * float((np.arange(len(whole)) * np.abs(whole)).sum())
    if not np.abs(circle).min() > unseen * (1 + 1e-6):
        return False
    turned = np.angle(np.roll(circle, -1) / circle).sum()
    return bool(round(float(turned) / (2 * np.pi)) == 0)


def _roots(values: FloatArray, size: int) -> list[FloatArray]:
    """The square root of the filter, and also the bounded one if that may grow."""
    falling = bool((values[1:] <= values[:-1]).all()) and values[-1] >= 0  # no zeros within (Enestrom and Kakeya)
    plain = [square_root(values, size)] if values[0] > 0 else []
    return plain if falling else [*plain, square_root(minimum_phase(values), size)]


def _cost(values: FloatArray, root: FloatArray, task: Task) -> float:
    """The mean of variances times ||root||^2, before rounding to whole numbers."""
    each = np.cumsum(product(values, inverse(root, task.n), task.n) ** 2) * task.scales[0] ** 2
    cost = float(each.mean() * (root**2).sum())
    return cost if np.isfinite(cost) else np.inf


def _points(length: int) -> int:
    return min(max(_FINENESS << max(length - 1, 1).bit_length(), _FEWEST_POINTS), _MOST_POINTS)
