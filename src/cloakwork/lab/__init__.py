"""The laboratory: named experiments that print as tables, travel as JSON and draw as pictures."""

from cloakwork.lab.experiment import Experiment
from cloakwork.lab.gallery import Mixture, Refined
from cloakwork.lab.registry import EXPERIMENTS, find, read_result
from cloakwork.lab.result import Agreement, Claim, Finding, Goal, Measure, Result, Table

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
