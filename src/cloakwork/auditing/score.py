"""A learned score: one number for each row that is large where input 0 is the likelier."""

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.auditing.features import differing
from cloakwork.auditing.reports import Feature, ReportPair, Reports

_MAX_ENTRIES, _MAX_ROWS = 48, 20_000
_FEW = 6  # entries of which products are taken
_FURTHEST = 8.0


def learn_score(past: ReportPair) -> Feature:
    """Fit a score of the entries, and of their products where there are few, by ridge logistic regression.

    Notes
    -----
    Newton's method on sum log(1 + exp(-s_i w'f_i)) + |w|^2 / 2, on at most 20,000 reports of each input. Each entry is
    centred and scaled first, and clipped at 8 standard deviations.
    """
    columns = differing(past, _MAX_ENTRIES)
    sides = [reports.values[:_MAX_ROWS, columns] for reports in past]
    rows = np.concatenate(sides)
    numbers = np.where(np.isfinite(rows), rows, np.nan)
    with np.errstate(all="ignore"):
        count = np.isfinite(rows).sum(axis=0)
        centre = np.nan_to_num(np.nansum(numbers, axis=0) / count)
        scale = np.sqrt(np.nansum((numbers - centre) ** 2, axis=0) / count)
    scale = np.where(np.isfinite(scale) & (scale > 0), scale, np.inf)
    products = [(i, j) for i in range(len(columns)) for j in range(i, len(columns))] if len(columns) <= _FEW else []

    def terms(rows: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            z = np.nan_to_num(np.clip((rows - centre) / scale, -_FURTHEST, _FURTHEST))
        odd = ~np.isfinite(rows).all(axis=1, keepdims=True)
        return np.concatenate([np.ones((len(rows), 1)), odd, z, *(z[:, [i]] * z[:, [j]] for i, j in products)], axis=1)

    weights = _logistic(terms(rows), np.repeat([1.0, 0.0], list(map(len, sides))))
    heaviest = max(range(len(columns)), key=lambda k: abs(weights[2 + k]))

    def measure(reports: Reports) -> FloatArray:
        return np.asarray(terms(reports.values[:, columns]) @ weights)

    return Feature(f"the learned score of the entries (mostly entry {columns[heaviest]})", measure)


def _logistic(terms: FloatArray, labels: FloatArray) -> FloatArray:
    weights = np.zeros(terms.shape[1])
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(terms @ weights, -30.0, 30.0)))
        slope = terms.T @ (labels - chance) - weights
        step = np.linalg.solve((terms * (chance * (1 - chance))[:, None]).T @ terms + np.eye(len(weights)), slope)
        weights = weights + step
        if np.abs(step).max() < 1e-6:
            break
    return weights
