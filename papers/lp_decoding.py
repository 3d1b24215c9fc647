"""How many answers about a secret may be arbitrary before it can be hidden from linear programming.

Dwork, McSherry and Talwar (STOC 2007), as told by Gilbert and McMillan: of m answers y = M x to questions with Gaussian
weights, a share below 0.239 may be anything, and x is still found. So accurate answers to most questions hide nothing.
"""

import math

import numpy as np
from scipy import optimize, special

from cloakwork._checks import FloatArray

SHARE = float(special.erfc(math.sqrt(math.log(2))))
"""The largest share of arbitrary answers, 0.239: the largest |z| of Gaussian z that make up half of the sum of all."""


def answers(m: int, secret: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw m questions with Gaussian weights (m, n), and return them with their true answers."""
    questions = rng.standard_normal((m, len(secret)))
    return questions, questions @ secret


def misled(questions: FloatArray, true: FloatArray, share: float, rng: np.random.Generator) -> FloatArray:
    """Replace a share of the answers by those of another secret, where both differ most: nothing misleads more."""
    other = true + questions @ rng.standard_normal(questions.shape[1])
    chosen = np.argsort(-np.abs(other - true))[: int(share * len(true))]
    given = true.copy()
    given[chosen] = other[chosen]
    return given


def decoded(questions: FloatArray, given: FloatArray) -> FloatArray:
    """Return the x with the least ||y - M x||_1, by linear programming."""
    m, n = questions.shape
    costs = np.concatenate([np.zeros(n), np.ones(2 * m)])  # y - M x = above - below
    balance = np.hstack([questions, np.eye(m), -np.eye(m)])
    bounds = [(None, None)] * n + [(0, None)] * (2 * m)
    return np.asarray(optimize.linprog(costs, A_eq=balance, b_eq=given, bounds=bounds).x)[:n]
