"""Estimators that only the comparisons of the laboratory need."""

from papers.gallery.mixture import Mixture
from papers.gallery.refined import Refined

__all__ = ["Mixture", "Refined"]
