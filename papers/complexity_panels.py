"""Pictures of what tests of privacy need."""

from collections.abc import Iterable, Sequence
from typing import Any

from papers.complexity import Rare, Sweep
from papers.slopes import Slope
from papers.style import FAINT, INK, SERIES, log_scale

# a diamond is hollow and larger than a dot, so that neither hides the other
_DIAMOND: Any = {"marker": "D", "linestyle": "", "color": SERIES[2], "markerfacecolor": "none", "markersize": 8}
_SMALL = 9


def draw_sweep(axes: Any, sweep: Sweep) -> None:
    """Needed, planned, printed, audited and the least possible, with the exponents below."""
    x = [one.x for one in sweep.points]
    printed = [one.printed for one in sweep.points if one.printed is not None]
    if printed:
        axes.plot(x, printed, "--", color=SERIES[1], label="printed")
    else:
        through = "printed rate, through the\nfirst dot: it has no constant"
        axes.plot(x, sweep.rate_through_first, "-.", color=SERIES[1], label=through)
    axes.plot(x, [one.planned for one in sweep.points], "-", color=SERIES[0], label="planned here")
    bars = [2 * one.error for one in sweep.points]
    needed = [one.needed for one in sweep.points]
    axes.errorbar(x, needed, yerr=bars, fmt="o", color=SERIES[0], markersize=5, label="needed")
    seen = [one for one in sweep.points if one.found > 0.5]
    axes.plot([one.x for one in seen], [one.audited for one in seen], label="an audit", **_DIAMOND)
    axes.plot(x, [one.limit for one in sweep.points], ":", color=INK, label="no test below")
    log_scale(axes, x)
    axes.set_xticks(x, [_tick(value) for value in x])
    axes.set_xlabel(f"{sweep.along}\nexponent {sweep.slope}, printed {sweep.claimed:+.1f}", fontsize=_SMALL)
    _dress(axes)


def draw_rares(axes: Any, rares: Sequence[Rare], growth: Slope) -> None:
    """The number of queries against A, which has no end."""
    depths = [one.depth for one in rares]
    seen = [one for one in rares if one.found > 0.5]
    axes.plot(depths, [one.needed for one in rares], "o", color=SERIES[0], markersize=5)
    axes.plot(depths, [one.printed for one in rares], ":", color=INK)
    axes.plot([one.depth for one in seen], [one.audited for one in seen], **_DIAMOND)
    axes.set_xticks(depths)
    axes.set_xlabel(f"A (an outcome has probability $e^{{-A}}$)\nexponent {growth} of $e^A$", fontsize=_SMALL)
    axes.set_title("Pure, no information", fontsize=10)
    _dress(axes)


def draw_legend(axes: Any, panels: Iterable[Any]) -> None:
    """One legend for all panels, in the place of one."""
    named: dict[str, Any] = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    axes.axis("off")
    axes.legend(list(named.values()), list(named), loc="center left")


def _dress(axes: Any) -> None:
    axes.set_yscale("log")
    axes.grid(color=FAINT, alpha=0.3)


def _tick(value: float) -> str:
    return f"1/{1 / value:.0f}" if value < 0.03 else f"{value:g}"
