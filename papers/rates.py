"""What to say of a rate that a paper claims, given the slope that was found."""

from papers.result import Agreement
from papers.slopes import ALLOWED, Slope


def judged(found: Slope, claimed: float, *, growing: bool) -> Agreement:
    """What to say of an upper bound O(x^claimed), when the error really has this slope.

    It agrees if the slope is near, and does not if the slope is beyond by two standard errors more than that. What is
    in between cannot be told, and a larger error never helps a claim. `growing` is for x that grows, else x goes to 0:
    an error that falls more slowly than its bound breaks it there.

    >>> str(judged(Slope(-0.5, 0.02), 0.0, growing=True)), str(judged(Slope(0.5, 0.02), 1.0, growing=False))
    ('looser than it need be', 'wrong as printed')
    >>> str(judged(Slope(0.0, 0.2), 0.1, growing=True))
    'cannot be told'
    """
    if found.near(claimed):
        return Agreement.AGREES
    if not abs(found.value - claimed) > ALLOWED + 2 * found.error:
        return Agreement.UNDECIDED
    return Agreement.WRONG if (found.value > claimed) is growing else Agreement.LOOSER


def opposite(verdict: Agreement) -> Agreement:
    """The same for a lower bound: it is loose where the truth lies above it, where an upper bound would be broken.

    >>> str(opposite(Agreement.WRONG)), str(opposite(Agreement.AGREES))
    ('looser than it need be', 'agrees')
    """
    return {Agreement.WRONG: Agreement.LOOSER, Agreement.LOOSER: Agreement.WRONG}.get(verdict, verdict)
