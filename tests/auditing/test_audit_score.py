"""The learned score in words: who works it out as it is written finds the event that was tested."""

import re
from typing import Any

import numpy as np
import pytest

from cloakwork.auditing import Verdict, Witness, audit
from cloakwork.auditing.learned_score import learn
from cloakwork.auditing.report_samples import Past, ReportKind, read

Rng = np.random.Generator
STANDARD = re.compile(r"z(\d+) = \(entry (\d+) ([+-]) ([\d.e+-]+)\) / ([\d.e+-]+)")
TERM = re.compile(r"([+-][\d.]+(?:e[+-]?\d+)?)((?: z\d+(?:\^2)?| \[[^]]+\])*)")
WHOLE = re.compile(r"the learned score \((.+)\) is (above|at most) ([-\d.e]+)")


def score_as_written(formula: str, rows: np.ndarray) -> np.ndarray:
    """The score of each row, by its words alone."""
    first, *notes = formula.split("; ")
    known = {}
    for note in notes:
        if found := STANDARD.fullmatch(note):
            name, entry, sign, off, scale = found.groups()
            centre = float(off) if sign == "-" else -float(off)
            known[f"z{name}"] = np.clip((rows[:, int(entry) - 1] - centre) / float(scale), -8, 8)
    marks = re.findall(r"\[entry (\d+) is ([-\d.e+]+)\]", first)
    for entry, value in marks:
        if f"z{entry}" in known:
            known[f"z{entry}"] = np.where(rows[:, int(entry) - 1] == float(value), 0.0, known[f"z{entry}"])
    assert ("z is 0 where its entry has a value in brackets" in notes) or not marks
    total = np.zeros(len(rows))
    for weight, factors in TERM.findall(first):
        term = np.full(len(rows), float(weight))
        for factor in re.findall(r"z\d+(?:\^2)?|\[[^]]+\]", factors):
            term *= of_factor(factor, known, rows)
        total += term
    return total


def of_factor(factor: str, known: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    if factor == "[an entry is not finite]":
        return np.asarray((~np.isfinite(rows)).any(axis=1))
    if factor.startswith("["):
        entry, value = re.findall(r"entry (\d+) is (\S+)\]", factor)[0]
        return np.asarray(rows[:, int(entry) - 1] == float(value))
    name, _, power = factor.partition("^")
    return np.asarray(known[name] ** int(power or 1))


def turned(database: int, size: int, rng: Rng) -> np.ndarray:
    """Only the sign of the correlation tells the inputs apart."""
    way = 0.9 * (2 * database - 1)
    return np.round(rng.multivariate_normal([3, -40], [[1, way], [way, 1]], size=size), 3)


def witness_of(mechanism: Any, *, epsilon: float = 1.0) -> Witness:
    found = audit(mechanism, epsilon=epsilon, reports=20_000, rng=np.random.default_rng(1))
    assert found.verdict is Verdict.VIOLATION
    assert found.witness is not None
    return found.witness


def test_the_event_as_it_is_written_is_the_event_that_was_tested() -> None:
    witness = witness_of(turned)
    said = WHOLE.match(witness.event)
    assert said is not None, witness.event
    formula, side, cut = said.groups()
    assert "smaller terms" not in formula
    for database in (0, 1):
        score = score_as_written(formula, turned(database, 200_000, np.random.default_rng(2 + database)))
        share = np.mean(score > float(cut) if side == "above" else score <= float(cut))
        assert abs(share - witness.frequencies[database]) < 0.05


@pytest.mark.parametrize("width", [2, 3, 7])
def test_the_formula_gives_the_score_and_says_how_many_terms_it_leaves_out(width: int) -> None:
    rng = np.random.default_rng(1)
    rows = [rng.normal(5 + shift, 2.0, size=(4000, width)) for shift in (0.0, 0.5)]
    for part, share in zip(rows, (0.3, 0.1), strict=True):
        part[rng.random(4000) < share, 0] = -1.0
    past = Past(read(rows[0], ReportKind.FLOAT), read(rows[1], ReportKind.FLOAT), rng)
    score = learn(past)
    name = score.name()
    formula = name.removeprefix("the learned score (").removesuffix(")")
    assert "[entry 1 is -1]" in formula
    assert "entry 0" not in formula
    first, _, left = formula.split("; ")[0].partition(" and ")
    assert len(TERM.findall(first)) + int(left.partition(" ")[0] or 0) == np.count_nonzero(score.weights)
    if not left:
        np.testing.assert_allclose(score_as_written(formula, rows[0]), past.x.feature(score.feature), atol=0.02)
