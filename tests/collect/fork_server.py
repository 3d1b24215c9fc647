"""A process that has loaded all of Cloakwork and forks collectors on demand: a life costs tenths of a second.

Run as a program, with a site file whose solver is prepared once and a file that holds how many milliseconds the wall
clock of all collectors is wrong. Each line that it reads is `{"words": [...], "log": "FILE", "store": "URL"}`: it forks
a process that runs `cloakwork` with these words on that store, and answers with its number.
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
    """Let the wall clock be wrong by what the file says, from now on and in all children; other clocks go on."""
    with file.open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), 8)
    right = time.time_ns

    def time_ns() -> int:
        return right() + 1_000_000 * int(struct.unpack("<q", shared[:8])[0])

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def _live(words: list[str], log: str, store: str) -> None:
    """Be a collector; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, stream in enumerate((nothing, said, said)):
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
    from cloakwork.collect.collected_site import load_collected_site  # noqa: PLC0415
    from cloakwork.collect.solver import Solver  # noqa: PLC0415

    Solver(load_collected_site(sys.argv[1])).prepare()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody has to wait for those who were killed
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        told = json.loads(line)
        number = os.fork()
        if number == 0:
            _live(told["words"], told["log"], told["store"])
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
