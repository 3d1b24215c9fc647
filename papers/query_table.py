"""Table 9.1 of the thesis with numbers: the cost of testing a claim as printed, corrected, here, and at least."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork.auditing import KnownPair, KnownPure, Pair, UnknownPair
from cloakwork.auditing.query_plan import checked_epsilon, checked_gap, checked_outcomes
from cloakwork.errors import InputError
from papers.query_limits import approximate_limit, pure_limit

BLINDNESS = (
    "the proof of Theorem 10.7, n^(1-o(1)), fails; Liu and Oh (2019) prove the order n / log n for estimating delta"
)
"""What is known of tests without information that no bound of ours shows."""


@dataclass(frozen=True)
class CostRow:
    """One cell of the table of costs: queries on each input, at the same gap and confidence 2/3.

    `printed` is the thesis' number with the constants that it prints (none where it prints none), `corrected` what
    suffices with its thresholds and its inequalities mended, `here` what the tester of this package uses, `lower` what
    no test can go below. Infinite where no number does.
    """

    privacy: str
    information: str
    printed: float | None
    corrected: float
    here: float
    lower: float
    remark: str


@dataclass(frozen=True)
class CostTable:
    """Table 9.1 of the thesis with numbers in place of orders of growth."""

    n: int
    epsilon: float
    delta: float
    alpha: float
    beta: float
    rows: tuple[CostRow, ...]

    def __str__(self) -> str:
        head = (
            f"Queries on each input, n={self.n}, epsilon={self.epsilon:g}, delta={self.delta:g}, alpha={self.alpha:g}, "
            f"beta={self.beta:.3g}\n{'':<34}{'printed':>14}{'corrected':>14}{'here':>14}{'at least':>14}"
        )
        lines = [
            f"{f'{row.privacy}, {row.information}':<34}"
            + "".join(_cell(value) for value in (row.printed, row.corrected, row.here, row.lower))
            for row in self.rows
        ]
        return "\n".join([head, *lines])


def cost_table(*, n: int, epsilon: float, delta: float, alpha: float, beta: float | None = None) -> CostTable:
    """The costs of all settings side by side: as printed, corrected, here, and the least possible.

    Parameters
    ----------
    delta
        Of the approximate claim, above 0; the pure rows have delta = 0.
    alpha
        The gap: in delta for the approximate rows, in epsilon for the pure ones.
    beta
        Least outcome probability of the pair that stands for the pure row with full information: at most (and by
        default) 1/(n - 1 + e^epsilon), the largest with which some outcome is on the boundary of the claim.

    Notes
    -----
    McMillan, Table 9.1. The thesis' parameter is alpha/2 for Algorithm 4 and alpha/10 for Algorithm 6 as printed
    (alpha/12 corrected), so that all columns have the same gap.
    """
    checked_outcomes(n)
    checked_gap(delta, alpha)
    if delta == 0:
        raise InputError("delta=0: the approximate rows need a delta above 0; the pure rows are there anyway.", delta=0)
    boundary = boundary_pair(n, epsilon, beta)
    least = float(min(boundary.zero.min(), boundary.one.min()))
    pure = KnownPure(boundary, epsilon, alpha).plan
    unknown = UnknownPair(n, epsilon, delta, alpha).plan
    known = KnownPair(boundary, epsilon, delta, alpha).plan
    least_approximate = approximate_limit(n=n, epsilon=epsilon, delta=delta, alpha=alpha)
    unit = (1 + math.exp(2 * epsilon)) / (alpha / 2) ** 2
    rows = (
        CostRow("pure", "no information", math.inf, math.inf, math.inf, math.inf, "unverifiable (Theorem 10.5)"),
        CostRow(
            "pure",
            "full information",
            math.log(n) / ((alpha / 10) ** 2 * least**2),
            3 * math.log(12 * n) / (math.expm1(-alpha / 12) ** 2 * least),
            pure.per_input,
            pure_limit(boundary, epsilon=epsilon, alpha=alpha),
            "Algorithm 6; the printed proof gives 12 alpha where 10 alpha is stated",
        ),
        CostRow(
            "approximate",
            "no information",
            max(4 * n, 12) * unit,
            max(n, 24) * unit,
            unknown.per_input,
            least_approximate,
            f"Algorithm 4; as printed it tests one direction only; {BLINDNESS}",
        ),
        CostRow(
            "approximate",
            "full information",
            None,
            3 * math.sqrt(n) / (alpha / (1 + math.exp(epsilon))) ** 2,
            known.per_input,
            least_approximate,
            "Algorithm 5; printed without a constant; corrected as worked out at n = 256",
        ),
    )
    return CostTable(n, epsilon, delta, alpha, least, rows)


def boundary_pair(n: int, epsilon: float, beta: float | None = None) -> Pair:
    """A pair of pure privacy exactly epsilon with least probability beta, the rest spread evenly."""
    e = math.exp(checked_epsilon(epsilon))
    largest = 1 / (n - 1 + e)
    least = largest if beta is None else beta
    if not 0 < least <= largest * (1 + 1e-12):
        raise InputError(
            f"beta={beta!r}: give a probability above 0 and at most 1/(n - 1 + e^epsilon) = {largest:.4g}.", beta=beta
        )
    return Pair(*(np.r_[p, np.full(n - 1, (1 - p) / (n - 1))] for p in (least, e * least)))


def _cell(value: float | None) -> str:
    if value is None:
        return f"{'-':>14}"
    return f"{'none':>14}" if math.isinf(value) else f"{math.ceil(value):>14,}"
