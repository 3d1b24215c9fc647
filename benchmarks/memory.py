"""The most memory that this process held since the last reset, so that one benchmark does not count for the next."""

import gc
import resource
from contextlib import suppress
from pathlib import Path

_RESET = "5"  # see proc(5), clear_refs


def reset_peak() -> None:
    """Begin anew, where the system can (Linux)."""
    gc.collect()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET, encoding="ascii")


def peak_bytes() -> int:
    """Bytes at the peak; of the whole process where the system knows no other."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
