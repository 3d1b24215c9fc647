"""Prints the text of every error and warning that the package can raise: `python -m scripts.messages`.

Read it as a user would. `{name}` and `{...}` stand for values. Tests check the class and the attributes of an error,
not its words.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "src" / "cloakwork"


class Message(NamedTuple):
    """A message, the class of its error and the module that raises it."""

    module: str
    error: str
    text: str


def messages(folder: Path = PACKAGE) -> Iterator[Message]:
    """Every message with words of its own, in the order of modules and lines."""
    for path in sorted(folder.rglob("*.py")):
        module = path.relative_to(folder).with_suffix("").as_posix()
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if (name.endswith(("Error", "Warning")) or name == "error") and call.args:
                text = template(call.args[0])
                if any(letter.isalpha() for letter in re.sub(r"\{.*?\}", "", text)):
                    yield Message(module, name, text)


def template(node: ast.expr) -> str:
    """The words of a string expression, with names or `{...}` in braces for the values filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return template(node.left) + template(node.right)
    value = node.value if isinstance(node, ast.FormattedValue) else node
    return f"{{{ast.unparse(value)}}}" if isinstance(value, ast.Name | ast.Attribute) else "{...}"


def main() -> None:
    """Print all messages, by module."""
    module = ""
    for message in messages():
        if message.module != module:
            module = message.module
            sys.stdout.write(f"\n{module}\n\n")
        sys.stdout.write(f"- {message.error}: {' '.join(message.text.split())}\n")


if __name__ == "__main__":
    main()
