"""Prompt templates: plain files with a header that names their version and their variables.

    ---
    name: hypothesis
    version: 1
    variables: goal, limits
    ---
    The goal is {{goal}}.

A variable that the header names must be given and used, and nothing else may be given: a prompt that would be
rendered incompletely is an error, never a text with a hole.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

_HEADER = re.compile(r"\A---\n(?P<header>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
_FIELD = re.compile(r"\{\{(\w+)\}\}")


class PromptError(ValueError):
    """A prompt file or a rendering is faulty; the message names the file and the fault."""


@dataclass(frozen=True)
class Prompt:
    """One template."""

    name: str
    version: int
    variables: tuple[str, ...]
    body: str
    digest: str
    """SHA-256 of the whole file, for the tape's header."""

    def render(self, **values: str) -> str:
        """The text with every variable in its place; values are inserted as they are."""
        missing, extra = set(self.variables) - values.keys(), values.keys() - set(self.variables)
        if missing or extra:
            raise PromptError(
                f"prompt {self.name}: missing variables {sorted(missing)}, unknown variables {sorted(extra)}"
            )
        return _FIELD.sub(lambda match: values[match[1]], self.body)

    def rendered(self, text: str) -> bool:
        """Whether the text may have been rendered from this prompt."""
        parts = (re.escape(part) for part in _FIELD.split(self.body)[::2])
        return re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


def parse_prompt(text: str, file: str) -> Prompt:
    """The prompt in a file's text; raises PromptError that names the file."""
    match = _HEADER.match(text)
    if match is None:
        raise PromptError(f"prompt file {file} does not start with a header between two lines of ---")
    header = dict(_header_field(line, file) for line in match["header"].splitlines())
    if header.keys() != {"name", "version", "variables"} or not header["version"].isdigit():
        raise PromptError(f"prompt file {file}: the header needs name, version (a number) and variables")
    variables = tuple(v.strip() for v in header["variables"].split(",") if v.strip())
    used = set(_FIELD.findall(match["body"]))
    if used != set(variables):
        raise PromptError(
            f"prompt file {file}: the header names {sorted(variables)}, the text uses {sorted(used)}"
        )
    return Prompt(
        name=header["name"],
        version=int(header["version"]),
        variables=variables,
        body=match["body"].strip() + "\n",
        digest=hashlib.sha256(text.encode()).hexdigest(),
    )


def _header_field(line: str, file: str) -> tuple[str, str]:
    key, colon, value = line.partition(":")
    if not colon:
        raise PromptError(f"prompt file {file}: header line {line!r} is not `key: value`")
    return key.strip(), value.strip()


@dataclass(frozen=True)
class Prompts:
    """The prompts of one campaign: those that come with the package, and the user's in their place."""

    own: Mapping[str, str] = field(default_factory=dict)
    """Whole texts with their headers, by name."""

    def load(self, name: str) -> Prompt:
        """The prompt of this name; raises PromptError for one that does not exist or is faulty.

        A user's must have the variables of the one whose place it takes: its reader gives no others.
        """
        given = load_prompt(name)
        if name not in self.own:
            return given
        prompt = parse_prompt(self.own[name], f"of your own in place of {name}")
        if set(prompt.variables) != set(given.variables):
            raise PromptError(f"your prompt {name} must use the variables {', '.join(given.variables)}")
        return prompt


@lru_cache(maxsize=32)
def load_prompt(name: str, folder: Path | None = None) -> Prompt:
    """The prompt of this name; raises PromptError for one that does not exist or is faulty."""
    source = (folder or files("moeagent.prompts")) / f"{name}.md"
    if not source.is_file():
        raise PromptError(f"there is no prompt {name!r}; there are {', '.join(prompt_names())}")
    prompt = parse_prompt(source.read_text("utf-8"), source.name)
    if prompt.name != name:
        raise PromptError(f"prompt file {source.name} names itself {prompt.name!r}")
    return prompt


def prompt_names() -> tuple[str, ...]:
    """Names of the prompts that come with the package, sorted."""
    entries = (entry.name for entry in files("moeagent.prompts").iterdir())
    return tuple(sorted(name.removesuffix(".md") for name in entries if name.endswith(".md")))
