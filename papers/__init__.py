"""The laboratory: named experiments that repeat and check the papers, as tables, JSON and pictures."""

from papers.experiments import EXPERIMENTS, find

__all__ = ["EXPERIMENTS", "find"]
