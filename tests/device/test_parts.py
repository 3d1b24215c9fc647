"""The table of parts on the page on devices: it says what the library computes."""

from scripts.parts import FILE, table


def test_the_file_has_the_table_that_the_library_computes() -> None:
    assert FILE.read_text(encoding="utf-8").splitlines() == table(), "run python -m scripts.parts"
