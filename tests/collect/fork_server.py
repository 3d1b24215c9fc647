"""A process that has loaded all of Cloakwork and forks collectors on demand, in tenths of a second each.

Its arguments are a site file, whose solver it prepares once, and a file with the error of the wall clock of all
collectors in milliseconds. Each line of its input is `{"words": [...], "log": "FILE", "store": "URL"}`: it forks a
process that runs `cloakwork` with these words on that store, and prints its process id.
"""

import json
import mmap
import os
import signal
import struct
import sys
import time
from pathlib import Path


def _step_clock(file: Path) -> None:
    """Shift the wall clock by the content of the file, from now on and in all children; other clocks stay."""
    with file.open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), 8)
    true_time_ns = time.time_ns

    def time_ns() -> int:
        return true_time_ns() + 1_000_000 * int(struct.unpack("<q", shared[:8])[0])

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def _run(words: list[str], log: str, store: str) -> None:
    """Become a collector; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, stream in enumerate((nothing, output, output)):
        os.dup2(stream, number)
    from cloakwork.cli import main as command  # noqa: PLC0415 - after the clock

    sys.argv = ["cloakwork", *words]
    os.environ["CLOAKWORK_STORE"] = store
    code: object = 1
    try:
        command()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def main() -> None:
    _step_clock(Path(sys.argv[2]))
    from cloakwork.cli import collect  # noqa: F401, PLC0415 - after the clock
    from cloakwork.collect.collected_site import CollectedSite, load_collected_site  # noqa: PLC0415
    from cloakwork.collect.solver import Solver  # noqa: PLC0415

    watched = load_collected_site(sys.argv[1])
    assert isinstance(watched, CollectedSite)
    Solver(watched).prepare()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no one waits for killed children
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        request = json.loads(line)
        number = os.fork()
        if number == 0:
            _run(request["words"], request["log"], request["store"])
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
