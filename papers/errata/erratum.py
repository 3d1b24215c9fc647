"""One mistake in a paper, or one assumption that does not hold in practice, as two numbers."""

from papers.result import Agreement, Claim
from papers.rows import Mean, Row

ROUNDING = 1e-6
GENEROUS = 1.05  # a bound that is further from the truth is loose
EQUAL, AT_MOST, AT_LEAST = "=", "<=", ">="  # what is promised of the true number


def erratum(
    where: str,
    says: str,
    quantity: str,
    numbers: tuple[str, float, Mean | float],
    matters: str,
    *,
    assumed: bool = False,
) -> Row:
    """A printed statement, where it is, and a quantity as it follows from the print and as it is.

    Parameters
    ----------
    says
        The statement or the assumption, in a few words.
    quantity
        What the two numbers measure.
    numbers
        What is promised, the printed number, and the true one, with an error if it was measured.
    matters
        The consequence, in a few words.
    assumed
        Whether the number follows from a model that the paper assumes, and the true one from reality.
    """
    promise, printed, true = numbers
    return Row(
        where=where,
        says=says,
        quantity=quantity,
        promise=promise,
        printed=printed,
        true=true if isinstance(true, Mean) else Mean(true, 0.0),
        matters=matters,
        assumed=assumed,
    )


def verdict(one: Row) -> Agreement:
    """Wrong if the promise is broken (narrow if it was an assumption), loose if it holds by a wide margin.

    It is broken if the printed number is not true, beyond two standard errors and rounding.
    """
    room = 2 * one.true.error + ROUNDING * max(abs(one.printed), abs(one.true.value))
    over, under = one.true.value > one.printed + room, one.true.value < one.printed - room
    if {EQUAL: over or under, AT_MOST: over, AT_LEAST: under}[one.promise]:
        return Agreement.NARROW if one.assumed else Agreement.WRONG
    apart = factor(one)
    wide = apart is None or apart > GENEROUS
    return Agreement.LOOSER if wide and one.promise != EQUAL else Agreement.AGREES


def factor(one: Row) -> float | None:
    """The factor between the two numbers, 1 or above; None if one of them is 0 or their signs differ."""
    if one.printed * one.true.value <= 0:
        return None
    ratio = float(abs(one.true.value / one.printed))
    return max(ratio, 1 / ratio)


def claim(one: Row) -> Claim:
    """The erratum as a claim of its paper."""
    measured = f" ± {one.true.error:.2g}" if one.true.error else ""
    source = "assumed" if one.assumed else "printed"
    found = f"{one.quantity}: {source} {one.promise} {one.printed:.5g}, true {one.true.value:.5g}{measured}"
    return Claim(one.says, one.where, found, verdict(one))
