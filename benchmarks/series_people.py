"""A running sum that hides all visits of a person who leaves some time between them: ours beside jax-privacy's.

Errors are mean squares at mu = 1, over all outputs. jax-privacy is measured where it is installed (`pip install
jax-privacy`); otherwise its figures are those of version 2.0.0, written down here. It has two optimisers for this: of
banded Toeplitz matrices, and of all banded matrices with columns of equal length, which are not filters.
"""

from importlib.util import find_spec

import numpy as np
from rich.table import Table

from cloakwork.series import HOUR, Bins, Contribution, RunningSum, factor, tally
from cloakwork.series.strategies import error

GOAL = 1.05
RECORDED = {  # (hours, visits, separation in hours): Toeplitz, all banded matrices
    (72, 3, 1): (34.64, 109.50),
    (72, 3, 12): (19.40, 18.63),
    (72, 3, 24): (16.03, 15.15),
    (168, 7, 12): (80.00, None),
    (168, 7, 24): (58.09, None),
}
PEOPLE, DAYS, JITTER = 500, 28, 2.0  # a visit a day, at a person's own hour give or take two hours


def run() -> tuple[Table, bool]:
    """The table, and whether the goal is met."""
    table = Table(title="Mean squared error of running sums that hide a person, mu = 1")
    for name in (
        "hours",
        "visits",
        "hours between",
        "any time",
        "ours",
        "jax-privacy",
        "all banded",
        "ours / best",
        "",
    ):
        table.add_column(name, justify="right")
    table.add_column("daily visits lost", justify="right")
    met = True
    for (n, visits, separation), recorded in RECORDED.items():
        most = Contribution(visits, per_bin=1, separation=separation)
        ours = error(factor([RunningSum()], n, contribution=most), most)
        anywhere = error(factor([RunningSum()], n), Contribution(visits))
        toeplitz, banded = recorded if find_spec("jax_privacy") is None else _measured(n, visits, separation)
        ratio = ours / min(rival for rival in (toeplitz, banded) if rival is not None)
        met &= ratio <= GOAL
        errors = ["-" if value is None else f"{value:.2f}" for value in (anywhere, ours, toeplitz, banded)]
        ends = [f"{ratio:.3f}", "met" if ratio <= GOAL else "MISSED", f"{100 * lost(separation):.1f} %"]
        table.add_row(f"{n}", f"{visits}", f"{separation}", *errors, *ends)
    return table, met


def lost(separation: int) -> float:
    """The share of made-up daily visits that do not count because others are too near."""
    rng = np.random.default_rng(1)
    hours = 24 * np.arange(DAYS) + rng.uniform(8, 16, (PEOPLE, 1)) + rng.normal(0, JITTER, (PEOPLE, DAYS))
    times, people = (hours.ravel() * HOUR).astype(np.int64), np.repeat(np.arange(PEOPLE), DAYS)
    bins = Bins(start=0, every=HOUR, n=24 * (DAYS + 1))
    counted = tally(times, bins, persons=people, most_per_person=DAYS, separation=separation)
    return 1 - float(counted.values.sum()) / len(times)


def _measured(n: int, visits: int, separation: int) -> tuple[float, float | None]:
    import jax  # type: ignore[import-not-found] # noqa: PLC0415 - a rival, and never needed otherwise
    from jax_privacy.matrix_factorization import (  # type: ignore[import-not-found] # noqa: PLC0415
        dense,
        sensitivity,
        toeplitz,
    )

    jax.config.update("jax_enable_x64", True)
    errors = []
    for bands in {separation, n}:
        root = toeplitz.optimize_banded_toeplitz(n, bands)
        square = toeplitz.minsep_sensitivity_squared(root, separation, visits, n, skip_checks=True)
        errors.append(float(toeplitz.per_query_error(strategy_coef=root, n=n).mean() * square))
    if n > min(hours for hours, _, _ in RECORDED):
        return min(errors), None
    matrix = dense.optimize(n, bands=separation, equal_norm=True)
    square = sensitivity.get_min_sep_sensitivity_upper_bound(matrix, separation, visits) ** 2
    return min(errors), float(dense.per_query_error(strategy_matrix=matrix).mean() * square)
