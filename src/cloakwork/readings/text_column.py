"""A column of texts, held as whole numbers."""

from dataclasses import dataclass

from cloakwork._checks import IntArray, frozen
from cloakwork.errors import InputError


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts as codes: row k holds `labels[codes[k]]`. Labels are unique."""

    codes: IntArray
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        frozen(self.codes)
        if len(set(self.labels)) < len(self.labels):
            raise InputError("labels: each label must occur once.")
