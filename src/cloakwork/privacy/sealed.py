"""What was claimed of a thing stays true: it does not change any more."""


class Immutable:
    """Base of all that makes a claim: once `_freeze` was called, no attribute can be set."""

    _kind = "cloak"
    _frozen = False

    def _freeze(self) -> None:
        object.__setattr__(self, "_frozen", True)

    def __setattr__(self, name: str, value: object) -> None:
        if self._frozen:
            raise AttributeError(
                f"{name}: a {self._kind} does not change, or its claim would not hold. Make another one."
            )
        object.__setattr__(self, name, value)
