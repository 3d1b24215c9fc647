"""The command line: parse, call, print."""

import os
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from cloakwork._extras import optional_parts
from cloakwork.errors import MissingExtraError

# Several threads for matrices as small as ours wait for each other: on a busy machine they take up to a hundred times
# as long. It has to be said before NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

BAD_INPUT = 2
_ANY = 1000
# how many words after a command name files that it reads
_INPUTS = {
    **dict.fromkeys(("plan", "calibrate", "simulate", "provision", "sensor", "series", "sheet"), 1),
    **dict.fromkeys(("keys new", "keys list", "keys export", "keys rotate", "keys revoke", "audit mqtt"), 1),
    "unveil": 2,
    "audit readings": 2,
    "recover": _ANY,
    "collect": _ANY,
}


def main() -> None:
    """Run `cloakwork` with the arguments of this process."""
    missing = missing_input(sys.argv[1:])
    if missing is not None:  # said before the libraries of the command are loaded, which takes seconds
        hint = " Write an example with: cloakwork init" if missing.endswith(".toml") else ""
        sys.stderr.write(f"cloakwork: {missing}: No such file or directory.{hint}\n")
        sys.exit(BAD_INPUT)
    try:
        with optional_parts():
            from cloakwork.cli.app import app, run_app  # noqa: PLC0415 - it needs the extra `cli`
    except MissingExtraError as problem:
        sys.exit(f"cloakwork: {problem}")
    run_app(app)


def missing_input(words: Sequence[str]) -> str | None:
    """The first file that a command would read and that does not exist, of those named before any option.

    >>> missing_input(["recover", "none.toml", "readings.csv"])
    'none.toml'
    >>> missing_input(["init", "new.toml"])
    """
    for size in (1, 2):
        files = words[size : size + _INPUTS.get(" ".join(words[:size]), 0)]
        for word in takewhile(lambda word: not word.startswith("-"), files):
            if not Path(word).exists():
                return word
    return None
