"""One text for each value, so that a digest of it means the same on every machine."""

import hashlib
import json


def canonical(values: object) -> str:
    r"""JSON with sorted keys, no spaces and the shortest form of each number that reads back as the same.

    >>> canonical({"b": [1, 0.1], "a": "°C"})
    '{"a":"\\u00b0C","b":[1,0.1]}'
    """
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(values: object) -> str:
    """SHA-256 of the canonical form, in hexadecimal."""
    return hashlib.sha256(canonical(values).encode()).hexdigest()
