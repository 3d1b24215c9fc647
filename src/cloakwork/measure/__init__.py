"""How far a recovered map is from the truth."""

from cloakwork.measure.emd import emd, l1, l2

__all__ = ["emd", "l1", "l2"]
