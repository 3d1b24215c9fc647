"""Where the papers are wrong, each place with a number: what the print gives, and what is true."""

from cloakwork.lab.errata.elsewhere import ELSEWHERE
from cloakwork.lab.errata.erratum import Erratum, Part, Promise, all_errata

__all__ = ["ELSEWHERE", "Erratum", "Part", "Promise", "all_errata"]
