"""Where a gateway gets its readings from."""

import re
import shlex
import subprocess
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from cloakwork.errors import ReadingError

LONGEST = 64  # characters of a number
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")


class Source(Protocol):
    """Something that measures; `read` returns the reading as an exact fraction in the site's unit."""

    def read(self) -> tuple[int, int]:
        """Numerator and denominator of the reading; raises an error where there is none."""


@dataclass(frozen=True)
class CommandSource:
    """A program that prints one number; it is given `timeout` seconds and no shell."""

    command: str
    timeout: float

    def read(self) -> tuple[int, int]:
        """Run the program."""
        done = subprocess.run(  # noqa: S603 - the owner of the device names the program
            shlex.split(self.command), capture_output=True, timeout=self.timeout, check=True, stdin=subprocess.DEVNULL
        )
        return as_fraction(done.stdout)


@dataclass(frozen=True)
class FileSource:
    """A file that holds one number, such as those that Linux offers for its sensors."""

    path: Path

    def read(self) -> tuple[int, int]:
        """Read the file."""
        with self.path.open("rb") as file:
            return as_fraction(file.read(LONGEST + 16))


@dataclass(frozen=True)
class ConstantSource:
    """Always the same reading, for trying things out."""

    value: float

    def read(self) -> tuple[int, int]:
        """The value, exactly."""
        return self.value.as_integer_ratio()


def as_fraction(text: bytes) -> tuple[int, int]:
    r"""The only number in a text, exactly; an error says that there is none, and never what was there.

    >>> as_fraction(b"21.25\n")
    (85, 4)
    """
    try:
        found = text.decode("ascii").strip()
    except UnicodeDecodeError:
        found = ""
    if len(found) > LONGEST or not _NUMBER.fullmatch(found):
        raise ReadingError("the source gave something that is not one decimal number.")
    return Fraction(found).as_integer_ratio()
