"""Where a gateway gets its readings from: exact numbers, or an error that does not repeat what was there."""

import os
import sys
import time
from fractions import Fraction
from pathlib import Path
from subprocess import SubprocessError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.device import CommandReading, FileReading, as_fraction
from cloakwork.errors import ReadingError


@given(st.decimals(-(10**9), 10**9, places=9))
def test_a_decimal_number_is_read_exactly(number: object) -> None:
    assert Fraction(*as_fraction(f" {number}\n".encode())) == Fraction(str(number))


@pytest.mark.parametrize(
    "text", [b"", b"21,5", b"21.5 C", b"nan", b"inf", b"1e999", b"0x10", b"1 2", b"\xff", b"9" * 65, b"1/2"]
)
def test_anything_else_is_refused_without_being_repeated(text: bytes) -> None:
    with pytest.raises(ReadingError) as problem:
        as_fraction(text)
    assert not text or text.decode("latin-1") not in str(problem.value)


def test_a_command_is_run_without_a_shell_and_within_its_time() -> None:
    assert CommandReading(f"{sys.executable} -c 'print(20.5)'", 10.0).read() == (41, 2)
    with pytest.raises(SubprocessError):
        CommandReading(f"{sys.executable} -c 'import time; time.sleep(5)'", 0.2).read()
    with pytest.raises(SubprocessError):
        CommandReading(f"{sys.executable} -c 'raise SystemExit(3)'", 10.0).read()


def test_a_file_says_how_old_its_value_is(tmp_path: Path) -> None:
    file, pipe = tmp_path / "temp", tmp_path / "pipe"
    file.write_text("20.5\n")
    now = time.time()
    for written, fresh in ((now, True), (now - 3000, True), (now - 3700, False), (now + 3600, False)):
        os.utime(file, (written, written))
        assert FileReading(file).written_within(3_600_000) == fresh
    os.mkfifo(pipe)
    os.utime(pipe, (0, 0))
    (tmp_path / "link").symlink_to("/proc/self/oom_score")
    assert FileReading(pipe).written_within(0)
    assert FileReading(tmp_path / "link").written_within(0)
