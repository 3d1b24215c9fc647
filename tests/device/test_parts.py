"""The table of parts on the page on devices: it says what the library computes."""

from scripts.assumptions import written
from scripts.parts import MARKS, PAGE, table


def test_the_page_has_the_table_that_the_library_computes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page, table(), MARKS), "run python -m scripts.parts"
