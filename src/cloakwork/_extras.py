"""Optional parts: which extra of the package brings a library that is not installed."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cloakwork.errors import MissingExtraError

_EXTRAS = {
    "cli": ("paho", "pydantic", "pydantic_core", "rich", "typer"),
    "collect": ("amqtt", "fastapi", "prometheus_client", "sqlalchemy", "starlette", "uvicorn"),
    "dask": ("dask", "distributed"),
    "parquet": ("pyarrow",),
    "plot": ("matplotlib",),
    "postgres": ("psycopg",),
}


@contextmanager
def optional_parts() -> Iterator[None]:
    """Turn the failed import of an optional library into an error that says what to install."""
    try:
        yield
    except ModuleNotFoundError as problem:
        library = (problem.name or "").partition(".")[0]
        for extra, libraries in _EXTRAS.items():
            if library in libraries:
                python = shlex.quote(sys.executable)
                raise MissingExtraError(
                    f"This needs {library}, which is not installed: {python} -m pip install 'cloakwork[{extra}]'.",
                    library=library,
                    extra=extra,
                ) from None
        raise
