"""Check a privacy claim from outside: black-box tests of a mechanism on two inputs."""

from cloakwork.auditing.audit import audit
from cloakwork.auditing.result import Audit, Profile, Verdict, Witness

__all__ = ["Audit", "Profile", "Verdict", "Witness", "audit"]
