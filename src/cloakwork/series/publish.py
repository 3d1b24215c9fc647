"""The verbs: publish filters of a series, convolve privately."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cloakwork.errors import InputError
from cloakwork.series.cloak import SeriesCloak
from cloakwork.series.filters import Coefficients, Filter
from cloakwork.series.mechanisms import Fourier, Mechanism
from cloakwork.series.published import Published


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
    """Publish one or more filters of private series, shape (n,) or (series, n), with nothing beyond their ends.

    The arguments are those of `SeriesCloak`. Each call spends its own (epsilon, delta).

    Examples
    --------
    >>> from cloakwork.series import RunningSum
    >>> visits = [3, 0, 4, 1, 7, 0, 2, 5]
    >>> published = publish(visits, RunningSum(), epsilon=1.0, delta=1e-6)
    >>> published.values.shape, round(published.expected_mse**0.5)
    ((8,), 7)
    """
    return _cloak(
        x,
        filters,
        epsilon=epsilon,
        delta=delta,
        contribution=contribution,
        step=step,
        touched=touched,
        mechanism=mechanism,
    ).release(x)


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

    y_i = sum over j of h_j x_{i-j mod N}. The arguments are those of `SeriesCloak`, the mechanism is `Fourier()` by
    default. Each call spends its own (epsilon, delta).

    Examples
    --------
    >>> smooth = convolve([3, 0, 4, 1, 7, 0, 2, 5], [0.5, 0.5], epsilon=1.0, delta=1e-6)
    >>> smooth.values.shape
    (8,)
    """
    try:
        kernel = np.atleast_1d(np.asarray(h, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError("h: give a list of real coefficients; for a filter such as Trend(24), use publish.") from None
    n = np.shape(x)[-1] if np.ndim(x) else 0
    if kernel.ndim != 1 or not 1 <= kernel.size <= n:
        raise InputError(
            f"h has shape {kernel.shape}: give up to as many coefficients as there are values, {n}.", shape=kernel.shape
        )
    return _cloak(
        x,
        Coefficients(kernel),
        epsilon=epsilon,
        delta=delta,
        contribution=contribution,
        step=step,
        touched=touched,
        mechanism=Fourier() if mechanism is None else mechanism,
        circular=True,
    ).release(x)


def _cloak(
    x: ArrayLike,
    filters: Filter | Sequence[Filter],
    *,
    epsilon: float,
    delta: float,
    contribution: float,
    step: float | None,
    touched: int | None,
    mechanism: Mechanism | None,
    circular: bool = False,
) -> SeriesCloak:
    shape = np.shape(x)
    if not 1 <= len(shape) <= 2 or 0 in shape:
        raise InputError(f"x has shape {shape}: give one series (n,) or several (series, n).", shape=shape)
    return SeriesCloak(
        filters,
        shape[-1],
        epsilon=epsilon,
        delta=delta,
        contribution=contribution,
        step=step,
        touched=touched,
        series=shape[0] if len(shape) == 2 else 1,
        circular=circular,
        mechanism=mechanism,
    )
