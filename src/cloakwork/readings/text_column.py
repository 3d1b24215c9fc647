"""A column of texts, held as whole numbers."""

from dataclasses import dataclass

from cloakwork._checks import IntArray


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts as codes: row k holds `labels[codes[k]]`. Labels are unique."""

    codes: IntArray
    labels: tuple[str, ...]
