"""Tables as people and programs read them."""

import pytest
from rich.console import Console

from cloakwork.cli import output, report

COLUMNS = ["place", *(f"with {number} sensors" for number in range(12))]
ROWS = [["a room with a long name", *(f"{number}.2345 ± 0.0012" for number in range(12))]] * 2


def printed(*, terminal: bool) -> list[str]:
    most = output.width(Console(width=80, force_terminal=terminal))
    return list(report.lines(["Errors", report.Table.of(COLUMNS, ROWS)], most))


def test_a_program_gets_a_row_in_a_line() -> None:
    lines = printed(terminal=False)
    assert len([line for line in lines if all(cell in line for cell in ROWS[0])]) == 2


def test_a_table_too_wide_for_a_terminal_continues_below_and_nothing_is_cut() -> None:
    lines = printed(terminal=True)
    text = "\n".join(lines)
    assert all(text.count(cell) >= 2 for cell in ROWS[0])
    assert all(column in text for column in COLUMNS)
    assert text.count(ROWS[0][0]) > 4
    assert max(map(len, lines)) <= 80


def test_work_that_takes_a_while_is_named_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "FIRST_S", 0.001)
    monkeypatch.setattr(output, "AGAIN_S", 0.001)

    def work() -> None:
        said = ""
        with output.working("following people", 8, stopped="nothing written") as show:
            while "following people ...\n" not in said:
                said += capsys.readouterr().err
            show(2)
            while "following people ... 25 %\n" not in said:
                said += capsys.readouterr().err
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert capsys.readouterr().err.endswith("nothing written\n")
