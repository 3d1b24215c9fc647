"""A problem of a site, with the change of its file that helps."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """What is wrong with the `key` of a site file, or not covered there, and the `change` that would help.

    An `impossible` problem must not be planned with.
    """

    key: tuple[str | int, ...]
    problem: str
    change: str
    impossible: bool = False

    def __str__(self) -> str:
        return f"{self.problem} {self.change}".strip()
