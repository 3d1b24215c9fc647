"""Estimators that the library itself does not need: rivals for the comparisons of the laboratory."""

from cloakwork.lab.gallery.mixture import Mixture
from cloakwork.lab.gallery.refined import Refined

__all__ = ["Mixture", "Refined"]
