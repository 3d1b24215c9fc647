"""The command line: parse, call, print."""

import os
import sys

from cloakwork._extras import optional_parts
from cloakwork.errors import MissingExtraError

# Several threads for matrices as small as ours wait for each other: on a busy machine they take up to a hundred times
# as long. It has to be said before NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

INTERRUPTED = 130


def main() -> None:
    """Run `cloakwork` with the arguments of this process."""
    try:
        with optional_parts():
            from cloakwork.cli.app import app, run_app  # noqa: PLC0415 - it needs the extra `cli`
    except MissingExtraError as problem:
        sys.exit(f"cloakwork: {problem}")
    except KeyboardInterrupt:  # while libraries are loaded
        sys.exit(INTERRUPTED)
    run_app(app)
