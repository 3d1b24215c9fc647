"""The command line: parse, call, print."""

from cloakwork.cli.app import main

__all__ = ["main"]
