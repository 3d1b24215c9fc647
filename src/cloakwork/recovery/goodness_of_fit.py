"""How well readings fit the model: check this before trusting a map."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray

Drawn = TypeVar("Drawn")

DOUBTFUL = 0.005  # a fit this unlikely is reported
OUTLYING = 1e-4  # a sensor this unlikely among all sensors is set aside
MAX_OUTLIERS = 3  # sensors of one frame that are set aside, and one in ten


@dataclass(frozen=True)
class Fit:
    """How well a frame fits the model.

    `p_value` is the probability of a misfit at least this bad under the model (the least of three tests, times three).
    `misfit` is the squared misfit, chi-square with at most `degrees` of freedom. `set_aside` lists the sensors left out
    because nothing explains their readings, and `inflation` is the factor on the noise that makes the rest plausible.

    >>> from cloakwork.physics import HeatLine, sources
    >>> from cloakwork.recovery import PointSources, recover
    >>> line = HeatLine(n=40, m=20, T=0.01)
    >>> readings = line.apply(sources(line, [0.3]))
    >>> readings[15] += 5
    >>> print(recover(readings, line, sigma=0.1, estimator=PointSources(1)).fit)
    no source explains the reading of sensor 15, now set aside
    """

    p_value: float = 1.0
    misfit: float = 0.0
    degrees: int = 0
    set_aside: tuple[int, ...] = ()
    inflation: float = 1.0

    @property
    def doubtful(self) -> bool:
        """Whether the model or a sensor is probably wrong."""
        return self.p_value < DOUBTFUL or bool(self.set_aside)

    def __str__(self) -> str:
        remarks = []
        if self.set_aside:
            names = ", ".join(str(sensor) for sensor in self.set_aside)
            plural = "s" if len(self.set_aside) > 1 else ""
            remarks.append(f"no source explains the reading{plural} of sensor{plural} {names}, now set aside")
        if self.p_value < DOUBTFUL:
            remarks.append(
                f"no sources explain the readings (p = {self.p_value:.1g}): the sources differ from those stated in "
                "strength, number or kind, or the physics is wrong"
            )
        if self.inflation > 1:
            remarks.append(f"vicinities are widened as if the noise were {self.inflation:.2g} times larger")
        return "; ".join(remarks) or f"the readings fit the model (p = {self.p_value:.2g})"


def joint_p_value(fits: Iterable[Fit]) -> float:
    """The p-value of many frames together, which reveals small errors such as a slightly wrong diffusion.

    The sum of the misfits against a chi-square law with the sum of the degrees. Sensors set aside do not count, and
    fitted parameters are not subtracted, so it errs towards a good fit.

    >>> joint_p_value([Fit(0.5, 10.0, 10)] * 3) > 0.4 > 1e-6 > joint_p_value([Fit(0.1, 16.0, 10)] * 30)
    True
    """
    listed = list(fits)
    misfit, degrees = sum(fit.misfit for fit in listed), sum(fit.degrees for fit in listed)
    return float(special.gammaincc(degrees / 2, misfit / 2)) if degrees else 1.0


@dataclass(frozen=True, eq=False)
class Misfit:
    """Whitened readings less the best fit.

    `rest` (m,) has `degrees` of freedom; `inside` is its squared norm within the range of the physics, which has `rank`
    dimensions, `fitted` of them used by the fit. `scores` (m,) are the misfits of each sensor given all others, which
    are `rest` itself if the noise of the sensors is independent.
    """

    rest: FloatArray
    scores: FloatArray
    degrees: int
    inside: float
    rank: int
    fitted: int = 0

    @cached_property
    def p_value(self) -> float:
        """Three times the least p-value of three tests: within the range, over all sensors, and of the worst sensor."""
        total = special.gammaincc(max(1, self.degrees) / 2, float(self.rest @ self.rest) / 2)
        inside = special.gammaincc(self._inside_degrees / 2, self.inside / 2)
        return float(min(1.0, 3 * min(inside, total, self.worst_p_value)))

    @property
    def worst(self) -> int:
        """The sensor with the largest misfit."""
        return int(np.argmax(np.abs(self.scores)))

    @property
    def worst_p_value(self) -> float:
        """The probability that any sensor has such a misfit."""
        return float(min(1.0, 2 * len(self.rest) * special.ndtr(-np.abs(self.scores[self.worst]))))

    @property
    def excess(self) -> float:
        """The factor on the noise that makes the misfit typical."""
        ratios = (self.inside / self._inside_degrees, float(self.rest @ self.rest) / max(1, self.degrees))
        return float(np.sqrt(max(*ratios, 1.0)))

    def fit(self, set_aside: Iterable[int] = ()) -> Fit:
        """The fit to report."""
        return Fit(self.p_value, self.inside, self.rank, tuple(sorted(set_aside)))

    @property
    def _inside_degrees(self) -> int:
        return max(1, self.rank - self.fitted)


def draw_checked(
    draw: Callable[[frozenset[int], float], tuple[Drawn, Misfit]],
    missing: frozenset[int],
    ignored: frozenset[int] = frozenset(),
    *,
    remedies: int,
) -> tuple[Drawn, Drawn, Fit]:
    """Draw the sources of a frame; while it does not fit, draw again without its worst sensor or with wider noise.

    `draw` takes the sensors that do not count and a factor on the noise. Returns the first draws, the draws to use, and
    the fit with the noise as it is, which lists `ignored` sensors as set aside but not `missing` ones.
    """
    excluded, inflation = missing | ignored, 1.0
    first, misfit = draw(excluded, inflation)
    used, fit = first, misfit.fit(excluded - missing)
    for _ in range(remedies):
        if misfit.p_value >= DOUBTFUL:
            break
        outliers = excluded - missing - ignored
        if misfit.worst_p_value < OUTLYING and len(outliers) < min(MAX_OUTLIERS, len(misfit.rest) // 10 + 1):
            excluded |= {misfit.worst}
        else:  # in steps of a fourth root of two, so that frames with similar misfits share a model
            inflation *= 2.0 ** float(np.ceil(4 * np.log2(misfit.excess)) / 4)
        used, misfit = draw(excluded, inflation)
        if inflation == 1.0:
            fit = misfit.fit(excluded - missing)
        fit = replace(fit, set_aside=tuple(sorted(excluded - missing)), inflation=inflation)
    return first, used, fit
