"""Picture of a calibration walk: readings against the model, and where they disagree."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cloakwork.cli.draw import ACCENT, INK, floor, save
from cloakwork.fitting import WalkFit
from cloakwork.physics import FloorPlan


def draw_walk(path: Path, fit: WalkFit) -> None:
    """Draw each sensor's rise at each spot against the model, and the misfit of each sensor on the floor.

    It shows true readings, so only its owner may read the file.
    """
    figure = Figure(figsize=(11, 5), layout="constrained")
    line, plan = figure.subplots(1, 2)
    known = fit.walk.counts > 0
    expected, read = ((values - fit.baselines)[known] for values in (fit.expected, fit.walk.means))
    error = np.sqrt(fit.walk.variances[known])
    line.errorbar(expected, read, error, fmt=".", color=INK, ecolor="#bbbbbb", markersize=4)
    top = float(max(expected.max(), read.max()))
    line.plot([0, top], [0, top], color=ACCENT, linewidth=1)
    unit = f", {fit.site.unit}" if fit.site.unit else ""
    line.set_xlabel(f"above the baseline in the model{unit}")
    line.set_ylabel(f"above the baseline in the readings{unit}")
    line.spines[["top", "right"]].set_visible(False)
    line.set_title(f"{fit.site.name}: reach {fit.reach.value:.3g} m, strength {fit.strength.value:.3g}", fontsize=10)
    if isinstance(fit.site.physics, FloorPlan):
        floor(plan, fit.site.physics.rooms, None)
        worst = np.sqrt(fit.squares.sum(axis=0) / np.maximum(known.sum(axis=0) - 2, 1))
        at = fit.site.physics.sensor_positions
        marks = plan.scatter(at[:, 0], at[:, 1], c=worst, cmap="OrRd", vmin=0, vmax=max(3.0, float(worst.max())))
        figure.colorbar(marks, ax=plan, label="residual of a sensor, in standard deviations")
        for name, (x, y) in zip(fit.site.sensor_ids, at.tolist(), strict=True):
            plan.annotate(name, (x, y), xytext=(0, 5), textcoords="offset points", ha="center", fontsize=6, color=INK)
        plan.plot(*fit.walk.at.T, "+", color=INK, markersize=6)
        plan.set_title("sensors, and the spots of the walk (+)", fontsize=10)
    save(figure, path, private=True)
