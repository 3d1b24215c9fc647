"""Publish filters of a private series, or its circular convolution, in one call."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, numbers
from cloakwork.errors import InputError, ReadingError
from cloakwork.series.filters import Coefficients, Filter
from cloakwork.series.mechanisms import Fourier, Mechanism
from cloakwork.series.series_cloak import Published, SeriesCloak


def publish(
    x: ArrayLike,
    filters: Filter | Sequence[Filter],
    *,
    epsilon: float,
    delta: float,
    contribution: float = 1,
    step: float | None = None,
    touched: int | None = None,
    mechanism: Mechanism | None = None,
) -> Published:
    """Publish one or more filters of private series, shape (n,) or (series, n).

    The arguments are those of `SeriesCloak`. The number of values and of series is public: it must not depend on the
    data. Each call spends its own (epsilon, delta).

    Examples
    --------
    >>> from cloakwork.series import RunningSum
    >>> visits = [3, 0, 4, 1, 7, 0, 2, 5]
    >>> published = publish(visits, RunningSum(), epsilon=1.0, delta=1e-6)
    >>> published.values.shape, round(published.expected_mse**0.5)
    ((8,), 7)
    """
    values = _series(x)
    options = {"contribution": contribution, "step": step, "touched": touched, "mechanism": mechanism}
    return _released(values, filters, epsilon, delta, options)


def convolve(
    x: ArrayLike,
    h: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    contribution: float = 1,
    step: float | None = None,
    touched: int | None = None,
    mechanism: Mechanism | None = None,
) -> Published:
    """Publish the circular convolution of a private x, shape (N,) or (series, N), with a public h of up to N values.

    y_i = sum over j of h_j x_{i-j mod N}. The arguments are those of `SeriesCloak`; the default mechanism is
    `Fourier()`. Each call spends its own (epsilon, delta).

    Examples
    --------
    >>> smooth = convolve([3, 0, 4, 1, 7, 0, 2, 5], [0.5, 0.5], epsilon=1.0, delta=1e-6)
    >>> smooth.values.shape
    (8,)
    """
    values = _series(x)
    if isinstance(h, type) or callable(getattr(h, "taps", None)):
        raise InputError("h: give a list of real coefficients; for a filter such as Trend(24), use publish.")
    kernel, n = np.atleast_1d(numbers("h", h)), values.shape[-1]
    if kernel.ndim != 1 or not 1 <= kernel.size <= n:
        raise InputError(
            f"h has shape {kernel.shape}: give a list of 1 to {n} coefficients, the number of values.",
            shape=kernel.shape,
        )
    options = {"contribution": contribution, "step": step, "touched": touched, "circular": True}
    chosen = Fourier() if mechanism is None else mechanism
    return _released(values, Coefficients(kernel), epsilon, delta, options | {"mechanism": chosen})


def _released(
    values: FloatArray, filters: Filter | Sequence[Filter], epsilon: float, delta: float, options: dict[str, Any]
) -> Published:
    series = len(values) if values.ndim == 2 else 1
    cloak = SeriesCloak(filters, values.shape[-1], epsilon=epsilon, delta=delta, series=series, **options)
    return cloak.release(values)


def _series(x: ArrayLike) -> FloatArray:
    """One series or several; their shape is checked before any other argument, since others must fit it."""
    values = numbers("x", x, error=ReadingError)
    if not 1 <= values.ndim <= 2 or not values.size:
        raise InputError(
            f"x has shape {values.shape}: give one series (n,) or several (series, n), of at least one value.",
            shape=values.shape,
        )
    return values
