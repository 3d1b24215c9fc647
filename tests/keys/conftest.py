"""What tests of keys share: a key file, the digest of a plan, and a time."""

from pathlib import Path

import pytest

from cloakwork.keys import FIRST_SECOND, new_keys, save_keys

PLAN = "ab" * 32
NOW = FIRST_SECOND + 60 * 400_000


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The key file of a flat."""
    path = tmp_path / "keys.json"
    save_keys(new_keys("flat"), path)
    return path
