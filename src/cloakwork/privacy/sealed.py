"""What was claimed of a thing stays true: it does not change any more."""


class Sealed:
    """Base of all that makes a claim: once `_seal` was called, no attribute can be set."""

    _kind = "cloak"
    _sealed = False

    def _seal(self) -> None:
        object.__setattr__(self, "_sealed", True)

    def __setattr__(self, name: str, value: object) -> None:
        if self._sealed:
            raise AttributeError(
                f"{name}: a {self._kind} does not change, or its claim would not hold. Make another one."
            )
        object.__setattr__(self, name, value)
