"""Where the papers are wrong, each place with a number: what the print gives, and what is true."""

from papers.errata.elsewhere import ELSEWHERE
from papers.errata.erratum import Erratum, Part, Promise, all_errata

__all__ = ["ELSEWHERE", "Erratum", "Part", "Promise", "all_errata"]
