"""Distances of recovered maps from the truth, and the least distance that any method can reach."""

from cloakwork.accuracy.bayes_risk import BayesRisk, bayes_risk
from cloakwork.accuracy.cramer_rao import CramerRao, cramer_rao
from cloakwork.accuracy.emd import emd
from cloakwork.accuracy.limits import Limits, limits, typical_std
from cloakwork.accuracy.simulated_people import Habits, SimulatedDay, simulated_day
from cloakwork.accuracy.slopes import Method
from cloakwork.accuracy.whitening import longest_path

__all__ = [
    "BayesRisk",
    "CramerRao",
    "Habits",
    "Limits",
    "Method",
    "SimulatedDay",
    "bayes_risk",
    "cramer_rao",
    "emd",
    "limits",
    "longest_path",
    "simulated_day",
    "typical_std",
]
