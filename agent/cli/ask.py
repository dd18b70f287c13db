"""Asking the engineer on the terminal."""

import sys

import typer


def ask_engineer(question: str, about: str) -> str:
    """yes or no from the terminal; `awaiting` where nobody can answer."""
    if not sys.stdin.isatty():
        return "awaiting"
    return "yes" if typer.confirm(f"{question} [{about}] Launch it?") else "no"
