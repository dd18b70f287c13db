"""The environment that draws pages: everything is escaped, and text of others is made visible first."""

from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from moeagent.agent.show.html.tried import verdict_cell
from moeagent.agent.show.html.words import count, sentence
from moeagent.agent.show.text import change_text, seconds
from moeagent.agent.show.visible import short, visible


def environment(*further: str) -> Environment:
    """Templates of the report, and of further packages by their import names."""
    packages = (*further, "moeagent.agent.show.html")
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {
        "seconds": seconds,
        "change": change_text,
        "badge": verdict_cell,
        "sentence": sentence,
        "short": short,
        "count": count,
    }
    return made


def _shown(value: Any) -> Any:
    """Whatever an expression of a template gives."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value)
