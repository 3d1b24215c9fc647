"""`cloakwork init`."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

from cloakwork.cli.arguments import argument
from cloakwork.cli.output import note, program
from cloakwork.errors import InputError


def init(path: Annotated[Path, argument("File to write.")] = Path("site.toml")) -> None:
    """Write the example site file; never overwrite one."""
    text = files("cloakwork.site").joinpath("example.toml").read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} already exists: give another name, or move it away.", path=str(path)) from None
    note(f"wrote {path}; next: {program()} plan {path}")
