"""Distances of recovered maps from the truth, and the least distance that any map can reach."""

from cloakwork.accuracy.bayes_risk import BayesRisk, bayes_risk
from cloakwork.accuracy.cramer_rao import CramerRao, cramer_rao
from cloakwork.accuracy.emd import emd, l1, l2
from cloakwork.accuracy.le_cam import LeCam, le_cam
from cloakwork.accuracy.limits import Limits, limits, typical_std
from cloakwork.accuracy.papers_bound import (
    Assumption,
    Constants,
    LineSetting,
    PapersBound,
    papers_bound,
    proof_constants,
)
from cloakwork.accuracy.resolution import Resolution, resolution
from cloakwork.accuracy.simulated_people import Habits, SimulatedDay, simulated_day
from cloakwork.accuracy.slopes import Method
from cloakwork.accuracy.whitening import longest_path, sigma_of_each_sensor

__all__ = [
    "Assumption",
    "BayesRisk",
    "Constants",
    "CramerRao",
    "Habits",
    "LeCam",
    "Limits",
    "LineSetting",
    "Method",
    "PapersBound",
    "Resolution",
    "SimulatedDay",
    "bayes_risk",
    "cramer_rao",
    "emd",
    "l1",
    "l2",
    "le_cam",
    "limits",
    "longest_path",
    "papers_bound",
    "proof_constants",
    "resolution",
    "sigma_of_each_sensor",
    "simulated_day",
    "typical_std",
]
