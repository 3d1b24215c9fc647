"""What was published: the values, and how far off they are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from cloakwork._checks import FloatArray, frozen
from cloakwork.errors import InputError
from cloakwork.privacy import Explanation
from cloakwork.series.given import check_confidence, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cloakwork.series.cloak import SeriesCloak


@dataclass(frozen=True, eq=False)
class Published:
    """Private outputs of one or more filters.

    Parameters
    ----------
    values
        Shape (n,), or (series, n) for several series; with a leading axis for several filters.
    standard_deviation
        Of each value, the same for all series: shape (n,), or (filters, n). Public: it does not depend on the data.
    cloak
        What they were published with: the claim, the mechanism and its cost.
    """

    values: FloatArray
    standard_deviation: FloatArray
    cloak: "SeriesCloak"

    def __post_init__(self) -> None:
        frozen(self.values)
        frozen(self.standard_deviation)

    @property
    def epsilon(self) -> float:
        """Of the claim that the values meet together."""
        return self.cloak.epsilon

    @property
    def delta(self) -> float:
        """Of the claim that the values meet together."""
        return self.cloak.delta

    @property
    def expected_mse(self) -> float:
        """The mean squared error to expect, with the cost of rounding."""
        return self.cloak.expected_mse

    @property
    def spectral_shape(self) -> float:
        """The papers' specLB of the filter, to compare filters by: known up to a constant only."""
        return self.cloak.spectral_shape

    def band(self, confidence: float = 0.95) -> FloatArray:
        """How far a value may be off with this confidence, each for itself; the shape of `standard_deviation`."""
        return np.asarray(self.standard_deviation * ndtri((1 + check_confidence(confidence)) / 2))

    def plot(self, ax: "Axes | None" = None, *, confidence: float = 0.95) -> "Axes":
        """Draw the values with their band, a line for each filter and series; on new axes unless some are given."""
        if ax is not None and not callable(getattr(ax, "fill_between", None)):
            raise InputError(f"ax={said(ax)}: give axes of Matplotlib, or leave it out.")
        from matplotlib.figure import Figure  # noqa: PLC0415 - slow to load, and most series are not drawn

        axes = Figure(figsize=(8.0, 4.2), layout="constrained").subplots() if ax is None else ax
        width = np.atleast_2d(self.band(confidence))
        rows = self.values.reshape(len(width), -1, self.values.shape[-1])
        times = np.arange(rows.shape[-1])
        for one, lines, off in zip(self.cloak.filters, rows, width, strict=True):
            for number, line in enumerate(lines):
                label = one.name if len(lines) == 1 else f"{one.name}, series {number}"
                [drawn] = axes.plot(times, line, label=label)
                axes.fill_between(times, line - off, line + off, alpha=0.25, color=drawn.get_color(), linewidth=0)
        axes.set(
            xlabel="time",
            ylabel="published",
            title=f"{100 * confidence:g} % bands: epsilon {self.epsilon:g}, delta {self.delta:g}",
        )
        axes.legend()
        return axes

    def explain(self) -> Explanation:
        """What is hidden, what is not, what it costs and what drives it, in plain sentences."""
        return self.cloak.explain()
