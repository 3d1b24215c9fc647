"""What a stream releases: a square root of its filter, which looks back only, all of it or its first coefficients."""

from dataclasses import dataclass

import numpy as np
from scipy import fft

from cloakwork._checks import FloatArray, IntArray, as_number, count
from cloakwork.errors import InputError
from cloakwork.series.noise import Claim, GaussianNoise, Noise
from cloakwork.series.power import inverse, product, square_root
from cloakwork.series.strategies import CausalStrategy, Strategy, Task, finest

_FINENESS = 64  # points on the circle for each coefficient
_FEWEST_POINTS, _MOST_POINTS = 1 << 12, 1 << 22
_FLOOR = 1e-9  # of the largest size: smaller ones are taken for this


@dataclass(frozen=True)
class SquareRoot:
    """Releases the square root of the filter, which looks back only: the one to use as data arrives.

    `band` keeps only the first so many coefficients of the root: a value is then remembered that long. `damping`
    multiplies coefficient k by damping^k, which moves zeros on the unit circle off it.

    Notes
    -----
    Any whole w with w_0 > 0 will do as a strategy: the outputs (h / w) * r follow from the release r by a recursion
    that looks as far back as w and h do. The error is ||w||^2 ||h / w||^2 in the long run, at least (mean |H|)^2 on the
    unit circle by Cauchy and Schwarz, and just that for |W|^2 = |H|. The square root of h as a power series is such a
    w if h has no zeros within the circle. Otherwise it grows without bound, and the root is taken of the filter with
    the same |H| and no such zeros.

    The lower triangular Toeplitz matrix of the filter is then the product of two such matrices (Henzinger, Upadhyay and
    Upadhyay; with running sums, Fichtenberger, Henzinger and Upadhyay).

    Cut off, the root stays within a few per cent of the best once `band` is a few times what the filter remembers; for
    running sums, once it is a fair part of the horizon (Kalinin and Lampert).
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
            raise InputError("SquareRoot() serves one filter that looks back from now on: use Fourier() for others.")
        values = task.taps[0].values
        size = task.n if self.band is None else min(self.band, task.n)
        roots = [root * self.damping ** np.arange(size) for root in _roots(values, size)]
        costs = {_cost(values, root, task): root for root in roots}
        ideal = min(costs)
        return finest(costs[ideal], lambda weights: CausalStrategy(task, weights, ideal))

    def noise(self, strategy: Strategy, claim: Claim) -> Noise:
        return GaussianNoise.meeting(strategy, claim)


def minimum_phase(values: FloatArray) -> FloatArray:
    """Coefficients of the same size at each frequency, without zeros within the unit circle; as many as `values`.

    >>> minimum_phase(np.array([1.0, 3.0])).round(6).tolist()
    [3.0, 1.0]

    Notes
    -----
    The logarithm of such a function has no negative frequencies on the circle; its real part, log |H|, is given.
    """
    size = _points(len(values))
    sizes = np.abs(fft.rfft(values, size))
    logs = fft.irfft(np.log(np.maximum(sizes, _FLOOR * sizes.max())), size)
    logs[1 : size // 2] *= 2
    logs[size // 2 + 1 :] = 0.0
    return np.asarray(fft.irfft(np.exp(fft.rfft(logs)), size)[: len(values)])


def forgets(weights: IntArray) -> bool:
    """Whether all zeros of w_0 + w_1 z + ... lie beyond the unit circle, so that dividing by it forgets.

    Notes
    -----
    The number of zeros within is how often W(e^{i t}) turns around 0 (the argument principle). It is counted on so
    fine a grid that W cannot turn unseen between two points: it changes by at most sum k |w_k| times half the distance
    to the nearest. Where that cannot be made sure of, the answer is no.
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
    """The square root of the filter, and where that may grow the one that does not."""
    falling = bool((values[1:] <= values[:-1]).all()) and values[-1] >= 0  # no zeros within (Enestrom and Kakeya)
    found = [square_root(values, size)] if values[0] > 0 else []
    return found if falling else [*found, square_root(minimum_phase(values), size)]


def _cost(values: FloatArray, root: FloatArray, task: Task) -> float:
    """The mean of variances times ||root||^2, before rounding to whole numbers."""
    each = np.cumsum(product(values, inverse(root, task.n), task.n) ** 2) * task.scales[0] ** 2
    cost = float(each.mean() * (root**2).sum())
    return cost if np.isfinite(cost) else np.inf


def _points(length: int) -> int:
    return min(max(_FINENESS << max(length - 1, 1).bit_length(), _FEWEST_POINTS), _MOST_POINTS)
