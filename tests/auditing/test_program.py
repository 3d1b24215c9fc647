"""A real program, asked on two inputs: honest ones, cheating ones, and ones that do not do what they should."""

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from cloakwork.auditing import ProgramSource, Verdict, audit
from cloakwork.errors import InputError
from tests.waiting import PATIENCE, until

RNG = np.random.default_rng(1)
GEOMETRIC = """
import math, random, sys
epsilon, value = float(sys.argv[1]), int(sys.argv[2])
rng = random.Random(value)
draw = lambda: math.floor(math.log(1 - rng.random()) / -epsilon)
while True:
    print(value + draw() - draw())
"""


def program(folder: Path, text: str) -> str:
    file = folder / "device.py"
    file.write_text(text, encoding="utf-8")
    return shlex.join([sys.executable, str(file)])


def test_an_honest_program_passes_and_one_with_less_noise_does_not(tmp_path: Path) -> None:
    device = program(tmp_path, GEOMETRIC)
    verdicts = []
    for epsilon in (1.0, 1.5):
        with ProgramSource(f"{device} {epsilon}", timeout=PATIENCE) as source:
            found = audit(source, epsilon=1.0, reports=5_000, confidence=0.999, rng=np.random.default_rng(2))
            verdicts.append(found.verdict)
            assert source.reader.whole
    assert verdicts == [Verdict.NONE_FOUND, Verdict.VIOLATION]


def test_the_input_takes_the_place_of_braces_or_comes_last(tmp_path: Path) -> None:
    device = program(tmp_path, "import sys\nprint('-'.join(sys.argv[1:]))")
    with ProgramSource(f"{device} --input={{}} x") as source:
        assert source(1, 1, RNG).tolist() == ["--input=1-x"]
    with ProgramSource(f"{device} 'a b'") as source:
        assert source(0, 1, RNG).tolist() == ["a b-0"]


def test_no_shell_is_asked(tmp_path: Path) -> None:
    with ProgramSource(f"echo $HOME; touch {tmp_path / 'made'} #{{}}") as source:
        assert source(0, 1, RNG)[0].startswith("$HOME; touch")
    assert not (tmp_path / "made").exists()


def test_a_program_that_ends_is_started_again(tmp_path: Path) -> None:
    device = program(tmp_path, "import os, sys\nprint(os.getpid())\nprint(7, end='')")
    with ProgramSource(device, timeout=PATIENCE) as source:
        found = source(0, 6, RNG).tolist()
    assert found[1::2] == [7, 7, 7]
    assert len(set(found[::2])) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import time; time.sleep(60)", "no line within 0.5 s"),
        ("import os; print(1, flush=True); os.kill(os.getpid(), 9)", "code -9"),
        (
            "import sys\nfor k in range(7): print(k)\nsys.exit('no sensor')",
            r"on input 0, after 7 reports, it ended with code 1: no sensor\. A failure can be an outcome too",
        ),
        ("pass", "without printing a report"),
        ("import sys\nwhile True: sys.stdout.write('9' * 1000)", "more than 65,536 bytes"),
        ("import os, time; os.close(1); time.sleep(60)", "no line within 0.5 s"),
        ("print(5)\nwhile True: print('1 2')", "has 2 entries"),
        (
            "import os, sys; os.close(1); print('x' * 200_000, file=sys.stderr); sys.exit('no sensor')",
            "code 1: no sensor",
        ),
    ],
)
def test_a_program_that_misbehaves_is_named_with_what_it_did(tmp_path: Path, text: str, said: str) -> None:
    # short only where it has to pass: a busy machine may need a while to start a program
    timeout = 0.5 if "0.5 s" in said else PATIENCE
    with ProgramSource(program(tmp_path, text), timeout=timeout) as source, pytest.raises(InputError, match=said):
        source(0, 300, RNG)


@pytest.mark.parametrize(("command", "said"), [("", "is empty"), ("'", "cannot be read"), ("/no/such", "No such file")])
def test_what_is_no_program_is_refused(command: str, said: str) -> None:
    with pytest.raises(InputError, match=said), ProgramSource(command) as source:
        source(0, 1, RNG)


def test_programs_end_with_the_source_and_so_do_their_children(tmp_path: Path) -> None:
    text = """
import subprocess, sys
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
child.wait()
"""
    with ProgramSource(program(tmp_path, text), timeout=PATIENCE) as source:
        child = int(source(0, 1, RNG)[0])
        assert Path(f"/proc/{child}").exists()
    until(lambda: not _alive(child), "the child of the program still runs")


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
