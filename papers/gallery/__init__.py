"""Estimators that the library itself does not need: rivals for the comparisons of the laboratory."""

from papers.gallery.mixture import Mixture
from papers.gallery.refined import Refined

__all__ = ["Mixture", "Refined"]
