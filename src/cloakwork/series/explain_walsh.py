"""Tables of counts, and predicates, in plain sentences."""

import math
from typing import TYPE_CHECKING

from cloakwork._checks import rounded_up
from cloakwork.privacy import Explanation
from cloakwork.series.explain import percent

if TYPE_CHECKING:
    from cloakwork.series.marginals import MarginalsCloak
    from cloakwork.series.walsh import WalshCloak


def explain_marginals(cloak: "MarginalsCloak") -> Explanation:
    """Say what tables of counts hide and cost."""
    tables = f"{cloak.tables:,} tables" if cloak.tables > 1 else "the table"
    return Explanation(
        _hidden(cloak, f"all of {tables}"),
        (
            f"The attributes and which tables there are is public; so is the error of each cell. {_more(cloak)}",
            _again(),
        ),
        (
            f"Counts are off by {math.sqrt(cloak.expected_mse):.4g} (root mean square over all cells); with noise on "
            f"each table apart, at the same claim, by {math.sqrt(cloak.separate_mse):.4g}: a mean squared error "
            f"{cloak.separate_mse / cloak.expected_mse:.3g} times as large.",
            _rounding(cloak),
        ),
        (
            f"{cloak.coefficients:,} whole numbers are released, each with noise of its own, more often needed ones "
            "with less; all tables follow from them and agree with each other.",
        ),
    )


def explain_convolution(cloak: "WalshCloak") -> Explanation:
    """Say what predicates of counts hide and cost."""
    return Explanation(
        _hidden(cloak, "all outputs"),
        (f"The predicates and their error are public. {_more(cloak)}", _again()),
        (
            f"Outputs are off by {math.sqrt(cloak.expected_mse):.4g} (root mean square).",
            _rounding(cloak),
        ),
        (
            f"{cloak.coefficients:,} of {cloak.size:,} Walsh coefficients are released, each with noise of its own, "
            "those that weigh most with least; the others weigh nothing and cost nothing.",
        ),
    )


def _hidden(cloak: "MarginalsCloak | WalshCloak", what: str) -> tuple[str, ...]:
    rows = "one row was" if cloak.contribution == 1 else f"up to {cloak.contribution} rows were"
    return (
        f"Someone who sees {what} cannot tell well whether {rows} there or not: any event they wait for is at most "
        f"e^{cloak.epsilon:g} = {rounded_up(math.exp(min(cloak.epsilon, 700)), 3)} times likelier with "
        "than without, plus "
        f"{cloak.delta:g}.",
    )


def _more(cloak: "MarginalsCloak | WalshCloak") -> str:
    rows = "one row" if cloak.contribution == 1 else f"{cloak.contribution} rows"
    return f"A person with k times {rows} is hidden with k mu only."


def _again() -> str:
    return "Publishing other tables of the same rows adds up: each release spends its own (epsilon, delta)."


def _rounding(cloak: "MarginalsCloak | WalshCloak") -> str:
    return f"Whole numbers cost {percent(cloak.rounding_cost)} of the mean squared error."
