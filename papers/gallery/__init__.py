"""Estimators that only the comparisons of the laboratory need."""

from papers.gallery.mixture import Mixture

__all__ = ["Mixture"]
