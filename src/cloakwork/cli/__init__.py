"""The command line: parse, call, print."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cloakwork._extras import optional_parts
from cloakwork.errors import MissingExtraError

# Several threads for matrices as small as ours wait for each other: on a busy machine they take up to a hundred times
# as long. It has to be said before NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

BAD_INPUT, INTERRUPTED = 2, 130
_ANY = 1000
# how many words after a command name files that it reads
_INPUTS = {
    **dict.fromkeys(("plan", "calibrate", "simulate", "provision", "sensor", "series", "sheet"), 1),
    **dict.fromkeys(("keys new", "keys list", "keys export", "keys revoke", "audit mqtt"), 1),
    "unveil": 2,
    "audit readings": 2,
    "recover": _ANY,
    "collect": _ANY,
}
# options of every command that name a file to read, and how to get one
_STORE_HINT = " Name the store that the collector created."
_INPUT_OPTIONS = {
    **dict.fromkeys(("--walk", "--password-file", "--ca"), ""),
    "--plan": " Write the plan with: cloakwork plan SITE --out FILE",
    "--keys": " Create it with: cloakwork keys new",
    "--from-store": _STORE_HINT,
}
# more options of some commands; those that read a store have one by default
_OPTIONS_OF = {
    "calibrate": {"--readings": ""},
    **{command: {"--store": _STORE_HINT} for command in ("export", "erase", "token list", "token revoke")},
}
# options of every command that take no value
FLAGS = frozenset(
    (
        *(
            "--all",
            "--alone",
            "--bench",
            "--browser",
            "--building",
            "--check",
            "--compare",
            "--continue",
            "--details",
            "--fullest",
        ),
        *(
            "--fullest",
            "--help",
            "--home-assistant",
            "--private-network",
            "--json",
            "--no-browser",
            "--no-simulation",
            "--once",
            "--proxied",
            "--results",
        ),
        *("--sweep", "--version", "--write", "--yes"),
    )
)
DEFAULT_STORE = "cloakwork.db"


def main() -> None:
    """Run `cloakwork` with the arguments of this process."""
    missing = missing_input(sys.argv[1:])
    if missing is not None:  # said before the libraries of the command are loaded, which takes seconds
        sys.stderr.write(f"cloakwork: {missing}\n")
        sys.exit(BAD_INPUT)
    try:
        with optional_parts():
            from cloakwork.cli.app import app, run_app  # noqa: PLC0415 - it needs the extra `cli`
    except MissingExtraError as problem:
        sys.exit(f"cloakwork: {problem}")
    except KeyboardInterrupt:  # while libraries are loaded
        sys.exit(INTERRUPTED)
    run_app(app)


def missing_input(words: Sequence[str]) -> str | None:
    """The message about the first file that a command would read and that does not exist.

    These are files among the arguments, and those of options that always name one.

    >>> missing_input(["recover", "none.toml", "readings.csv"])
    'none.toml: No such file or directory. Write an example with: cloakwork init'
    >>> missing_input(["plan", "--json", "--epsilon", "2", "none.toml"])
    'none.toml: No such file or directory. Write an example with: cloakwork init'
    >>> missing_input(["init", "new.toml"])
    """
    if "--help" in words:
        return None
    inputs: list[tuple[str, str]] = []
    options = dict(_INPUT_OPTIONS)
    for size in (1, 2):
        command = " ".join(words[:size])
        inputs += ((word, "") for word in _arguments(words[size:])[: _INPUTS.get(command, 0)])
        options |= _OPTIONS_OF.get(command, {})
    named = set()
    for word, following in zip(words, [*words, ""][1:], strict=True):
        option, given, value = word.partition("=")
        file = value if given else following
        if option in options and file:
            inputs.append((file, options[option]))
            named.add(option)
    if "--store" in options and "--store" not in named:
        inputs.append((os.environ.get("CLOAKWORK_STORE") or DEFAULT_STORE, _STORE_HINT))
    for file, hint in inputs:
        if not ("://" in file or "{id}" in file or Path(file).exists()):  # provision puts an id into the name
            example = " Write an example with: cloakwork init" if file.endswith(".toml") else ""
            return f"{file}: No such file or directory.{hint or example}"
    return None


def _arguments(words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    found, rest = [], iter(words)
    for word in rest:
        if not word.startswith("-"):
            found.append(word)
        elif word not in FLAGS and "=" not in word:
            next(rest, None)
    return found
