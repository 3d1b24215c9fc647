"""The cost of testing a claim, known before anything is sampled; some claims cannot be tested at all."""

from cloakwork.auditing.testers.lower_bounds import unnoticed_mass
from cloakwork.auditing.testers.outcome_pair import Pair
from cloakwork.auditing.testers.query_plan import CONFIDENCE, QueryPlan
from cloakwork.auditing.testers.stated_pair import KnownPair, KnownPure
from cloakwork.auditing.testers.unknown_pair import UnknownPair
from cloakwork.errors import InputError, UnverifiableError


def plan_queries(
    *,
    epsilon: float,
    delta: float,
    alpha: float,
    n: int | None = None,
    stated: Pair | None = None,
    confidence: float = CONFIDENCE,
) -> QueryPlan:
    """The cost of testing a claim on two inputs with the cheapest suitable test.

    `alpha` is the gap between what is accepted and what is rejected: in delta for approximate claims, in epsilon for
    pure ones (delta = 0), which need `stated`, the distributions that the maker states. Without them, `n` is the number
    of outcomes. `confidence` is the probability of a right answer on either side.

    Raises
    ------
    UnverifiableError
        For a pure claim without a stated pair: no number of queries would do.

    Examples
    --------
    >>> print(plan_queries(n=16, epsilon=1.0, delta=0.01, alpha=0.05).per_input)
    94541
    """
    if stated is None:
        if n is None:
            raise InputError("Neither n nor stated is given: give the number of outcomes, or the stated pair.")
        if delta == 0:
            raise unverifiable(epsilon)
        return UnknownPair(n, epsilon, delta, alpha, confidence).plan
    if n is not None and n != stated.n:
        raise InputError(f"n={n!r} but the stated pair has {stated.n} outcomes: leave n out.", n=n, stated=stated.n)
    if delta == 0:
        return KnownPure(stated, epsilon, alpha, confidence).plan
    plans = [
        KnownPair(stated, epsilon, delta, alpha, confidence).plan,
        UnknownPair(stated.n, epsilon, delta, alpha, confidence).plan,
    ]
    return min(plans, key=lambda plan: plan.total)


def unverifiable(epsilon: float) -> UnverifiableError:
    """The error that explains why a pure claim cannot be verified without information.

    Notes
    -----
    McMillan, Theorem 10.5. Its proof writes the divergence of P_0 and Q_0 where P_1 and Q_1 are meant; the argument of
    Proposition 10.9 (a leak of tiny probability through an outcome of its own) gives the same.
    """
    return UnverifiableError(
        f"epsilon={epsilon:g} with delta=0 and no description of the mechanism: no finite number of queries can "
        "verify it. A mechanism that shows its input outright, but rarely enough, passes every test: with a million "
        f"queries on each input, anything rarer than {unnoticed_mass(1_000_000):.1g}. Test a claim with delta above 0, "
        "or give the stated distributions. A search for violations can still say 'none found above x', never "
        "'verified'.",
        epsilon=epsilon,
    )
