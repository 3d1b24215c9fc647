"""Cloakwork: privacy for physical sensors.

Each sensor adds enough noise to its own readings to hide a small move of a source for a stated time, while an analyst
with only the noisy readings still learns its general vicinity.

Public names load on first use (`__init__.pyi` lists them), so `import cloakwork` is quick and `cloakwork.sensor` needs
no NumPy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
