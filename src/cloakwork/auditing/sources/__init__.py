"""Where reports of real things come from: a program, two recordings, a device on the bench."""

from cloakwork.auditing.bench_claim import BenchClaim, SetupComparison, bench_claim, compare
from cloakwork.auditing.bench_source import BenchListener, BenchSource, SetupRecording
from cloakwork.auditing.program_source import ProgramSource
from cloakwork.auditing.sources.forms import Form, Reader
from cloakwork.auditing.sources.recordings import Recordings, read_recordings

__all__ = [
    "BenchClaim",
    "BenchListener",
    "BenchSource",
    "Form",
    "ProgramSource",
    "Reader",
    "Recordings",
    "SetupComparison",
    "SetupRecording",
    "bench_claim",
    "compare",
    "read_recordings",
]
