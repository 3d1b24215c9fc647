"""The laboratory: named experiments that print as tables, travel as JSON and draw as pictures."""

from papers.experiment import Experiment
from papers.gallery import Mixture, Refined
from papers.registry import EXPERIMENTS, find, read_result
from papers.result import Agreement, Claim, Finding, Goal, Measure, Result, Table

__all__ = [
    "EXPERIMENTS",
    "Agreement",
    "Claim",
    "Experiment",
    "Finding",
    "Goal",
    "Measure",
    "Mixture",
    "Refined",
    "Result",
    "Table",
    "find",
    "read_result",
]
