"""The collector's HTTP interface: readings in, results out, for those who may."""

from cloakwork.collect.api.app import make_app
from cloakwork.collect.api.hub import Hub
from cloakwork.collect.api.settings import Settings
from cloakwork.collect.api.truth import Truth

__all__ = ["Hub", "Settings", "Truth", "make_app"]
