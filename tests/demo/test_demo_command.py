"""`cloakwork demo`, as a person or a machine runs it."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.forking import cloakwork

PATIENCE = 600.0


def around(folder: Path) -> dict[str, str]:
    """An environment with a place for temporary files of its own."""
    (folder / "tmp").mkdir()
    kept = {key: value for key, value in os.environ.items() if key != "CI"}
    return kept | {"TMPDIR": str(folder / "tmp"), "TERM": "xterm", "COLUMNS": "100"}


def test_without_a_terminal_it_draws_what_everyone_sees(tmp_path: Path) -> None:
    out = tmp_path / "pictures" / "today"
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = cloakwork("demo", "--out", out, env=around(tmp_path), **streams)
    said, notes = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, notes
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "demo.png").stat().st_size > 20_000
    for part in (
        "readings of 80 sensors",
        "right room",
        "always the commonest answer",
        "adds noise to its own reading",
        "Not hidden",
        "Someone keeps readings for",
    ):
        assert part in said
    for part in ("planning the noise of 80 sensors", "drew ", "cloakwork plan site.toml"):
        assert part in notes
    assert "#code=" not in said + notes
    assert list((tmp_path / "tmp").iterdir()) == []


def read_until(master: int, pattern: str, said: str) -> str:
    end = time.monotonic() + PATIENCE
    while not re.search(pattern, said):
        assert time.monotonic() < end, said
        if select.select([master], [], [], 1.0)[0]:
            try:
                said += os.read(master, 65536).decode()
            except OSError:
                raise AssertionError(f"the program ended: {said}") from None
    return said


def sign_in(url: str, code: str) -> int:
    request = urllib.request.Request(  # noqa: S310
        f"{url}/v1/session", json.dumps({"code": code}).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code


def test_on_a_terminal_the_map_lives_until_it_is_interrupted(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    process = cloakwork("demo", "--no-browser", env=around(tmp_path), stdin=slave, stdout=slave, stderr=slave)
    try:
        os.close(slave)
        said = read_until(master, r"cw_[\w-]{43}", "")
        said = read_until(master, r"[1-9]\d* frames? followed, map", said)
        found = re.search(r"The map: (http://127\.0\.0\.1:\d+)/#code=([\w-]{32})\s", said)
        token = re.search(r"cw_[\w-]{43}", said)
        assert found is not None
        assert token is not None
        path = f"{found[1]}/v1/sites/flat/latest"
        request = urllib.request.Request(path, headers={"Authorization": f"Bearer {token[0]}"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            assert answer.status == 200
        assert [sign_in(found[1], found[2]) for _ in range(2)] == [200, 401], "the address works once"
        assert len(list((tmp_path / "tmp").iterdir())) == 1
        process.send_signal(signal.SIGINT)
        said = read_until(master, "all data is removed", said)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert "60 times faster" in " ".join(said.split())
    assert list((tmp_path / "tmp").iterdir()) == []
