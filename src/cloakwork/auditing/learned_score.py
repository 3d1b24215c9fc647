"""A learned score: one number per row that is large where input 0 is the likelier."""

from dataclasses import dataclass, replace

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.auditing.report_samples import Feature, Past, Reports

_MOST_ENTRIES = 48
_MOST_ROWS = 20_000
_FEW = 6
_SHOWN = 8
_FURTHEST = 8.0
_MARKED = "z is 0 where its entry has a value in brackets"
_RIDGE = 1.0
_STEPS = 12


@dataclass(frozen=True, eq=False)
class LearnedScore:
    """A linear score of the entries, of their squares and products where there are few, and of their common values.

    An entry often has values that stand for something else than a number (a mark for "below", a code): each common
    value has a term of its own, and is left out of the numbers.
    """

    columns: IntArray
    atoms: tuple[tuple[int, float], ...]
    centre: FloatArray
    scale: FloatArray
    weights: FloatArray

    @property
    def feature(self) -> Feature:
        """The score as a feature."""
        return Feature(self.name(), self._measure)

    def _measure(self, reports: Reports) -> FloatArray:
        return np.asarray(self.features(reports.values[:, self.columns]) @ self.weights)

    def name(self) -> str:
        """The score as a formula; terms that do not fit in a sentence are counted."""
        terms = sorted(self._terms(), key=lambda term: -abs(term[0]))
        shown = " ".join(f"{weight:+.4g} {what}".rstrip() for weight, what, _ in terms[:_SHOWN])
        more = f" and {len(terms) - _SHOWN} smaller terms" if len(terms) > _SHOWN else ""
        used = sorted({place for _, _, places in terms[:_SHOWN] for place in places})
        where = [f"z{self.columns[k] + 1} = {self._standard(k)}" for k in used]
        notes = [*where, f"no z is beyond {_FURTHEST:g} either way"] if where else []
        notes += [_MARKED] if self.atoms else []
        return f"the learned score ({'; '.join([shown + more, *notes, 'entries are counted from 1'])})"

    def _terms(self) -> list[tuple[float, str, tuple[int, ...]]]:
        """Weight, words, and the places of the entries whose z is in it; in the order of `features`."""
        entry = [int(column) + 1 for column in self.columns]
        names: list[tuple[str, tuple[int, ...]]] = [("", ())]
        names += [(f"z{name}", (k,)) for k, name in enumerate(entry)]
        names += [("[an entry is not finite]", ())]
        names += [(f"[entry {entry[place]} is {value:.6g}]", ()) for place, value in self.atoms]
        names += [
            (f"z{entry[j]}^2" if j == k else f"z{entry[j]} z{entry[k]}", (j, k)) for j, k in self._products(len(entry))
        ]
        return [(float(weight), *name) for weight, name in zip(self.weights, names, strict=True) if weight]

    def _standard(self, place: int) -> str:
        off = f"{-self.centre[place]:+.4g}"
        return f"(entry {self.columns[place] + 1} {off[0]} {off[1:]}) / {self.scale[place]:.4g}"

    @staticmethod
    def _products(size: int) -> list[tuple[int, int]]:
        """The pairs of entries to multiply."""
        return [(j, k) for j in range(size) for k in range(j, size)] if size <= _FEW else []

    def features(self, rows: FloatArray) -> FloatArray:
        """The terms of the score, one row per report."""
        with np.errstate(all="ignore"):
            clean = np.clip((rows - self.centre) / self.scale, -_FURTHEST, _FURTHEST)
        clean[np.isnan(clean)] = 0.0
        marks = np.zeros((len(rows), len(self.atoms)))
        for place, (column, value) in enumerate(self.atoms):
            found = rows[:, column] == value
            marks[:, place] = found
            clean[found, column] = 0.0
        odd = (~np.isfinite(rows)).any(axis=1, keepdims=True).astype(np.float64)
        parts = [np.ones((len(rows), 1)), clean, odd, marks]
        products = [clean[:, [j]] * clean[:, [k]] for j, k in self._products(rows.shape[1])]
        return np.concatenate([*parts, *products], axis=1)


def learn(past: Past) -> LearnedScore:
    """Fit by logistic regression with a ridge, on at most 20,000 reports of each input.

    Notes
    -----
    Newton's method (iteratively reweighted least squares) on sum log(1 + exp(-s_i w'f_i)) + |w|^2 / 2.
    """
    x, y = past.x.values[:_MOST_ROWS], past.y.values[:_MOST_ROWS]
    columns = telling_entries(x, y, _MOST_ENTRIES)
    pooled = np.concatenate([x[:, columns], y[:, columns]])
    atoms = _common_values(pooled)
    numbers = np.where(np.isfinite(pooled), pooled, np.nan)
    for column, value in atoms:
        numbers[pooled[:, column] == value, column] = np.nan
    centre, scale = _moments(numbers)
    shape = LearnedScore(columns, atoms, centre, scale, np.empty(0))
    labels = np.repeat([1.0, 0.0], [len(x), len(y)])
    return replace(shape, weights=_logistic(shape.features(pooled), labels))


def _moments(numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and spread of each column, leaving out NaN; a useless column gets an infinite spread."""
    known = ~np.isnan(numbers)
    many = np.maximum(known.sum(axis=0), 1)
    with np.errstate(all="ignore"):
        centre = np.where(known, numbers, 0.0).sum(axis=0) / many
        scale = np.sqrt(np.where(known, (numbers - centre) ** 2, 0.0).sum(axis=0) / many)
    usable = np.isfinite(centre) & np.isfinite(scale) & (scale > 0)
    return np.where(usable, centre, 0.0), np.where(usable, scale, np.inf)


def _common_values(rows: FloatArray) -> tuple[tuple[int, float], ...]:
    """Of each column the values that at least one report in 50 has, at most three; the last of a full set follows."""
    found: list[tuple[int, float]] = []
    for column in range(rows.shape[1]):
        values, numbers = np.unique(rows[:, column], return_counts=True)
        common = np.argsort(-numbers, kind="stable")[:3]
        common = common[(numbers[common] >= 0.02 * len(rows)) & np.isfinite(values[common])]
        if len(values) > 2:
            found += [(column, float(values[place])) for place in common]
    return tuple(found)


def telling_entries(x: FloatArray, y: FloatArray, most: int) -> IntArray:
    """The entries whose mean, spread or share of special values differ most between the inputs, at most `most`."""
    if x.shape[1] <= most:
        return np.arange(x.shape[1])
    clean = [np.where(np.isfinite(part), part, 0.0) for part in (x, y)]
    with np.errstate(all="ignore"):
        spread = np.sqrt(clean[0].var(axis=0) + clean[1].var(axis=0))
        shift = np.abs(clean[0].mean(axis=0) - clean[1].mean(axis=0)) / spread
        widths = np.abs(np.log(clean[0].std(axis=0) / clean[1].std(axis=0)))
        odd = np.abs((~np.isfinite(x)).mean(axis=0) - (~np.isfinite(y)).mean(axis=0))
    telling = sum(np.where(np.isfinite(part), part, 0.0) for part in (shift, widths, odd))
    return np.sort(np.argsort(-np.asarray(telling), kind="stable")[:most])


def _logistic(features: FloatArray, labels: FloatArray) -> FloatArray:
    weights = np.zeros(features.shape[1])
    ridge = _RIDGE * np.eye(features.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30.0, 30.0)))
        slope = features.T @ (labels - chance) - _RIDGE * weights
        curve = (features * (chance * (1 - chance))[:, None]).T @ features + ridge
        step = np.linalg.solve(curve, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(weights)
