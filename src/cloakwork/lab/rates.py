"""What to say of a rate that a paper claims, given the slope that was found."""

from cloakwork.lab.result import Agreement
from cloakwork.lab.slopes import Slope

VAGUE = 0.25  # a slope with a larger error says nothing


def judged(found: Slope, claimed: float, *, growing: bool, allowed: float = 0.1) -> Agreement:
    """What to say of an upper bound O(x^claimed), when the error really has this slope.

    `growing` is for x that grows, else x goes to 0: an error that falls more slowly than its bound breaks it there.

    >>> str(judged(Slope(-0.5, 0.02), 0.0, growing=True)), str(judged(Slope(0.5, 0.02), 1.0, growing=False))
    ('looser than it need be', 'wrong as printed')
    """
    if not found.error <= VAGUE:
        return Agreement.UNDECIDED
    if found.near(claimed, allowed=allowed):
        return Agreement.AGREES
    return Agreement.WRONG if (found.value > claimed) is growing else Agreement.LOOSER


def opposite(verdict: Agreement) -> Agreement:
    """The same for a lower bound: it is loose where the truth lies above it, where an upper bound would be broken.

    >>> str(opposite(Agreement.WRONG)), str(opposite(Agreement.AGREES))
    ('looser than it need be', 'agrees')
    """
    return {Agreement.WRONG: Agreement.LOOSER, Agreement.LOOSER: Agreement.WRONG}.get(verdict, verdict)
