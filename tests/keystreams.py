"""What a device adds under its sequence numbers, for tests that ask once for each key."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import IntArray
from cloakwork.privacy import Keystream, NoiseTable
from cloakwork.sensor.keystream import COUNTER_BITS
from cloakwork.sensor.wire import LARGEST


def keyed_words(key: bytes, site: str, sensor: str, seqs: ArrayLike, count: int) -> Any:
    """Return the first words of each sequence number, of the generation of the first one."""
    return _keystream(key, site, sensor, seqs).words(seqs, count)


def keyed_noise(table: NoiseTable, key: bytes, site: str, sensor: str, seqs: ArrayLike) -> IntArray:
    """Return the noise, in steps, under each sequence number."""
    return _keystream(key, site, sensor, seqs).noise(table, seqs)


def _keystream(key: bytes, site: str, sensor: str, seqs: ArrayLike) -> Keystream:
    numbers = np.asarray(seqs)
    whole = numbers.ndim == 1 and numbers.size and numbers.dtype.kind in "iu"
    first = int(numbers[0]) if whole else 0
    return Keystream(key, site, sensor, first >> COUNTER_BITS if 0 <= first <= LARGEST else 0)
