"""The state of a learner on disk: which rounds are used up, and what was published."""

import fcntl
import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cloakwork._files import write_durably
from cloakwork.errors import BudgetError, InputError


@dataclass
class LearnerProgress:
    """The progress of a learner.

    Of the `spent` rounds, those that are not `learned` were lost in a crash. `totals` are the estimated losses of the
    experts, without what they have in common, and `variance` is that of each coordinate of the release. Only `used` is
    private: how often each person, by a hash, has counted.
    """

    spent: int
    learned: int
    totals: list[float]
    variance: float
    used: dict[str, int] = field(default_factory=dict)


class LearnerFile:
    """Keeps the progress of one learner in a file that one process at a time may use.

    `claim` identifies the experts and the claim; a file of another claim is refused. `save` returns when the file is on
    disk, and replaces it at once or not at all.
    """

    def __init__(self, path: Path, claim: str) -> None:
        self._path, self._claim = path, claim
        if not path.parent.is_dir():
            raise InputError(f"there is no folder {path.parent} for the state: create it first.", path=str(path))
        self._lock = path.with_name(f".{path.name}.lock").open("wb")  # closed to release it
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise BudgetError(f"{path} is in use by another learner: stop it first.", path=str(path)) from None

    def close(self) -> None:
        """Let another process use the file."""
        self._lock.close()

    def load(self) -> LearnerProgress | None:
        """The stored progress; None if there is no file yet."""
        try:
            body, digest, *_ = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return None
        except ValueError:
            body, digest = b"", b"-"
        if hashlib.sha256(body).hexdigest().encode() != digest:
            raise InputError(
                f"{self._path} is damaged, so used rounds are unknown. Start a new learner, for new rounds only.",
                path=str(self._path),
            )
        fields = json.loads(body)
        if fields.pop("claim") != self._claim:
            raise InputError(
                f"{self._path} is the state of a learner with other experts (schedules), horizon (rounds in all) or "
                "claim: give those, or another file.",
                path=str(self._path),
            )
        return LearnerProgress(**fields)

    def save(self, progress: LearnerProgress) -> None:
        """Replace the file durably."""
        body = json.dumps({"claim": self._claim, **asdict(progress)}).encode()
        digest = hashlib.sha256(body).hexdigest().encode()
        write_durably(self._path, body + b"\n" + digest + b"\n", mode=0o600)
