"""Convolution over bit strings: predicates of d binary attributes, from a histogram of all 2^d kinds of rows."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, frames, frozen, numbers, rounded_down
from cloakwork.errors import InputError, ReadingError
from cloakwork.privacy import Explanation, WordSource, private_words, simulated_words
from cloakwork.series.filters import check_scale
from cloakwork.series.hadamard import CoefficientsCloak, transformed
from cloakwork.series.release_noise import MOST_RELEASED, Publication

_NEGLIGIBLE = 1e-13  # of the largest coefficient: the rounding error of a transform
_LARGEST = 2.0**50  # sum of all counts: floats hold it exactly


@dataclass(frozen=True, eq=False)
class Convolved(Publication):
    """Private outputs: values of shape (2^d,), or (predicates, 2^d), and the standard deviation of each predicate's."""

    values: FloatArray
    standard_deviation: FloatArray
    cloak: "WalshCloak"

    def __post_init__(self) -> None:
        frozen(self.values)
        frozen(self.standard_deviation)


@final
class WalshCloak(CoefficientsCloak):
    """Publishes y(a) = sum over b of h(a xor b) x(b) for a private histogram x over d bits, once.

    Parameters
    ----------
    h
        The predicate, public: 2^d numbers; a row of kind b adds h(a xor b) to the output at a. Several predicates that
        share one release have shape (predicates, 2^d). Walsh coefficients that are 0 cost nothing.
    epsilon, delta
        The claim, for the whole release.
    contribution
        How much one protected person may change all counts together: the number of their rows.

    Notes
    -----
    With H the Walsh-Hadamard transform of h and N = 2^d, y = (1/N) transform of (H X). The whole numbers a_T X_T are
    released with noise, for a_T^2 proportional to |H_T|, and the mean squared error is (sum |H_T|)^2 / (N mu)^2. In the
    orthonormal coefficients h^ = H / sqrt N this is ||h^||_1^2 / (N mu^2), as for `Fourier`.

    Examples
    --------
    >>> import numpy as np
    >>> near = np.array([1.0, 0.5, 0.5, 0.0])  # rows that agree in both attributes, or in one of two
    >>> cloak = WalshCloak(near, epsilon=1.0, delta=1e-6)
    >>> round(cloak.ideal_mse * 0.2367047**2, 5)  # in units of 1/mu^2: (sum of |H| = 2, 1, 1, 0)^2 / 4^2
    1.0
    """

    def __init__(self, h: ArrayLike, *, epsilon: float, delta: float, contribution: int = 1) -> None:
        self.h, self.single = _predicates(h), np.ndim(h) == 1
        self.size = self.h.shape[1]
        spectra = transformed(self.h)
        spectra[np.abs(spectra) <= _NEGLIGIBLE * np.abs(spectra).max()] = 0.0
        worth = (spectra**2).mean(axis=0) / self.size**2
        self._used = frozen(np.flatnonzero(worth))
        self._spectra = frozen(spectra)
        super().__init__(
            worth[self._used], epsilon=epsilon, delta=delta, contribution=contribution, owner="convolution"
        )
        self._freeze()

    @property
    def expected_mses(self) -> FloatArray:
        """Mean squared error of each predicate's outputs, shape (predicates,)."""
        return np.asarray((self._spectra[:, self._used] / self.size) ** 2 @ self.coefficient_variances)

    def release(self, x: ArrayLike) -> Convolved:
        """Publish the outputs for true counts, shape (2^d,). A cloak does so once."""
        counts = self._counts(x)
        self._ledger.spend(1)
        return self._published(counts, private_words)

    def simulate(self, x: ArrayLike, *, rng: np.random.Generator) -> Convolved:
        """Draw from the same distribution as `release`; reproducible, hence not private. Spends nothing."""
        return self._published(self._counts(x), simulated_words(rng))

    def explain(self) -> Explanation:
        """Explain what is hidden, what is not, what it costs and why."""
        return Explanation(
            self._hidden("all outputs"),
            self._not_hidden("The predicates and their error are public."),
            (f"Outputs are off by {math.sqrt(self.expected_mse):.4g} (root mean square).", self._rounding),
            (
                f"{self.coefficients:,} of {self.size:,} Walsh coefficients are released, each with its own noise, and "
                "less of it for larger weights; the others have weight 0 and cost nothing.",
            ),
        )

    def __repr__(self) -> str:
        return f"WalshCloak(2^{self.size.bit_length() - 1} kinds, epsilon={self.epsilon:g}, delta={self.delta:g})"

    def _counts(self, x: ArrayLike) -> IntArray:
        values = frames("x", numbers("x", x, error=ReadingError), self.size, error=ReadingError)
        if values.ndim != 1:
            raise ReadingError(f"x has shape {values.shape}: give {self.size} counts.", shape=values.shape)
        far = np.flatnonzero(values != np.rint(values))
        if len(far):
            raise ReadingError(
                f"x[{far[0]}] is not a whole number ({len(far)} such entries): give counts.", place=int(far[0])
            )
        most = min(_LARGEST, MOST_RELEASED / float(self.strategy.weights.max()))
        if float(np.abs(values).sum()) >= most:
            raise ReadingError(
                "the counts are too large to be released with their noise in 63 bits: give counts that are below "
                f"{rounded_down(most)} in all.",
                most=most,
            )
        return values.astype(np.int64)

    def _published(self, counts: IntArray, words: WordSource) -> Convolved:
        coefficients = np.zeros(self.size)
        coefficients[self._used] = self._estimates(transformed(counts)[self._used], words)
        values = transformed(self._spectra * coefficients) / self.size
        spread = np.sqrt(self.expected_mses)
        return Convolved(values[0] if self.single else values, spread[:1] if self.single else spread, self)


def walsh_convolve(x: ArrayLike, h: ArrayLike, *, epsilon: float, delta: float, contribution: int = 1) -> Convolved:
    """Publish y(a) = sum over b of h(a xor b) x(b) for private counts x and public h, of 2^d numbers each.

    The arguments are those of `WalshCloak`. Each call spends its own (epsilon, delta).

    Examples
    --------
    >>> counts = [40, 3, 12, 25]  # rows 00, 01, 10, 11
    >>> same_first = [1, 1, 0, 0]  # all rows with the same first attribute
    >>> walsh_convolve(counts, same_first, epsilon=1.0, delta=1e-6).values.shape
    (4,)
    """
    return WalshCloak(h, epsilon=epsilon, delta=delta, contribution=contribution).release(x)


def _predicates(h: ArrayLike) -> FloatArray:
    array = numbers("h", h)
    size = array.shape[-1] if array.ndim else 0
    if array.ndim not in (1, 2) or not array.size or size & (size - 1):
        raise InputError(
            f"h has shape {array.shape}: give 2^d numbers for d attributes, or one row of them for each predicate.",
            shape=array.shape,
        )
    values = np.atleast_2d(frames("h", array, size))
    if not values.any():
        raise InputError("all numbers of h are 0: there is nothing to publish.")
    check_scale("number of h", values)
    return frozen(np.array(values))
