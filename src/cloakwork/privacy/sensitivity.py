"""How far a hidden move can shift the readings."""

import math
from enum import StrEnum

import numpy as np

from cloakwork._checks import FloatArray, positive
from cloakwork.errors import CalibrationError
from cloakwork.physics import Family, Physics


class Scope(StrEnum):
    """Against whom a source is hidden."""

    NETWORK = "network"
    """Someone who sees the readings of all sensors."""
    SENSOR = "sensor"
    """Someone who sees the readings of one sensor only."""


def sensitivity(physics: Physics | Family, *, alpha: float, scope: Scope = Scope.NETWORK) -> float:
    """How far a move of size `alpha` can shift the readings (same unit as the readings), rounded outward.

    Notes
    -----
    alpha * max ||M_i - M_j||_2 / d(i, j) over adjacent places i, j (Gilbert and McMillan, Proposition 5); with
    scope "sensor" the largest |M_ki - M_kj| / d(i, j) of any sensor k instead. Over a continuum of places it is
    the largest directional derivative.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> round(sensitivity(HeatLine(n=100, m=50, T=0.05), alpha=0.01), 6)
    0.135897
    """
    positive("alpha", alpha, error=CalibrationError)
    if Scope(scope) is Scope.NETWORK:
        return alpha * physics.joint_slope().value * (1 + 1e-15)
    return alpha * float(physics.sensor_slopes().max()) * (1 + 1e-15)


def exposure(
    model: Physics | Family,
    *,
    alpha: float,
    scope: Scope,
    sigma: FloatArray,
    step: FloatArray,
) -> float:
    """The mu of one frame: how many standard deviations a hidden move, with rounding, can shift it, rounded up.

    Notes
    -----
    network: alpha sup ||(M_i - M_j)/sigma|| / d + ||step/sigma||; sensor: the largest (alpha slope_l + step_l)/sigma_l.
    The step is taken 2^-20 larger to cover the division by it in floating point (|reading/step| is below 2^31).
    """
    steps = step * (1 + 2.0**-20)
    if scope is Scope.NETWORK:
        slope = model.joint_slope(1 / sigma).value
        rounding = math.sqrt(float(((steps / sigma) ** 2).sum()))
        return (alpha * slope + rounding) * (1 + 1e-12)
    return float(np.max((alpha * model.sensor_slopes() + steps) / sigma)) * (1 + 1e-12)
