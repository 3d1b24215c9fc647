"""The laboratory: named experiments that repeat and check the papers, as tables, JSON and pictures."""

from papers.experiment import Experiment, Run
from papers.experiments import EXPERIMENTS, find
from papers.result import Agreement, Claim, Finding, Goal, Measure, Result, Table
from papers.store import read_result

__all__ = [
    "EXPERIMENTS",
    "Agreement",
    "Claim",
    "Experiment",
    "Finding",
    "Goal",
    "Measure",
    "Result",
    "Run",
    "Table",
    "find",
    "read_result",
]
