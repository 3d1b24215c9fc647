"""Where reports of real things come from: a program, two recordings, a device on the bench."""

from cloakwork.auditing.sources.bench import BenchClaim, bench_claim
from cloakwork.auditing.sources.command import CommandSource
from cloakwork.auditing.sources.comparison import Comparison, compare
from cloakwork.auditing.sources.forms import Form, Reader
from cloakwork.auditing.sources.mqtt import Bench, BenchSource, Setup
from cloakwork.auditing.sources.recordings import Recordings, read_recordings

__all__ = [
    "Bench",
    "BenchClaim",
    "BenchSource",
    "CommandSource",
    "Comparison",
    "Form",
    "Reader",
    "Recordings",
    "Setup",
    "bench_claim",
    "compare",
    "read_recordings",
]
