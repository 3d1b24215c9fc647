"""Independent solvers for min sum(f), 0 <= f <= 1, ||M f - y|| <= radius."""

from dataclasses import dataclass
from typing import Any

import clarabel
import cvxpy
import numpy as np
from scipy import sparse

from cloakwork._checks import FloatArray


@dataclass(frozen=True, eq=False)
class Answer:
    """A rival's result; `solved` is its own verdict."""

    solved: bool
    objective: float
    map: FloatArray


@dataclass(frozen=True, eq=False)
class Clarabel:
    """Clarabel, called directly."""

    matrix: FloatArray
    tolerance: float = 1e-9

    def solve(self, readings: FloatArray, radius: float) -> Answer:
        """Solve one frame."""
        m, n = self.matrix.shape
        constraints = sparse.vstack(
            [-sparse.identity(n), sparse.identity(n), sparse.csc_array((1, n)), sparse.csc_array(self.matrix)],
            format="csc",
        )
        right = np.concatenate([np.zeros(n), np.ones(n), [radius], readings])
        cones = [clarabel.NonnegativeConeT(2 * n), clarabel.SecondOrderConeT(m + 1)]
        settings: Any = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = self.tolerance
        nothing = sparse.csc_matrix((n, n))
        solver = clarabel.DefaultSolver(nothing, np.ones(n), sparse.csc_matrix(constraints), right, cones, settings)
        answer = solver.solve()
        return Answer(str(answer.status) == "Solved", float(answer.obj_val), np.asarray(answer.x))


def cvxpy_pursuit(matrix: FloatArray, readings: FloatArray, radius: float) -> Answer:
    """CVXPY with its default choice of solver."""
    cp: Any = cvxpy
    f = cp.Variable(matrix.shape[1])
    problem = cp.Problem(cp.Minimize(cp.sum(f)), [f >= 0, f <= 1, cp.norm(matrix @ f - readings) <= radius])
    problem.solve()
    if f.value is None:
        return Answer(solved=False, objective=float("nan"), map=np.zeros(matrix.shape[1]))
    return Answer(problem.status == "optimal", float(problem.value), np.asarray(f.value))
