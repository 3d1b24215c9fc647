"""Compiled loops are compiled again when anything that they call has changed."""

import os
from pathlib import Path

from cloakwork._compile import folder_stamp
from cloakwork.recovery.jump_chain import run_chain


def test_a_change_in_any_file_of_the_folder_shows(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("y = 1\n")
    before = folder_stamp(tmp_path)
    os.utime(tmp_path / "b.py", ns=(1, 1))
    folder_stamp.cache_clear()
    assert folder_stamp(tmp_path) != before


def test_the_cache_of_a_loop_knows_all_files_of_its_folder() -> None:
    stamp = run_chain._cache._cache_file._source_stamp  # type: ignore[attr-defined]  # noqa: SLF001
    assert {"jump_chain.py", "chain_moves.py", "source_strength.py"} <= {name for name, _, _ in stamp[1]}
