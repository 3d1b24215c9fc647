"""Check a privacy claim from outside: black-box tests of a mechanism on two inputs.

`audit` stops as soon as it has seen enough. The testers of McMillan's thesis know their cost before they begin. Names
load on first use: devices need MQTT and sites.
"""

import lazy_loader

from cloakwork.auditing.audit import audit as audit  # its module, which has its name, would hide it

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
