"""As JSON, for whatever else starts servers."""

import json
from typing import Any

from moeagent.agent.export.records import Export
from moeagent.agent.export.words import Slot, Word


def json_document(export: Export) -> str:
    """argv, env and cwd; a word with a secret is a list of texts and `{"secret": VARIABLE}`."""
    start = export.start
    document = {
        "name": export.name,
        "argv": [_word(word) for word in start.argv],
        "env": {name: _word(value) for name, value in start.env.items()},
        "cwd": start.cwd,
        "secrets": list(start.secrets),
        "model": export.model,
        "gpus": export.gpus,
        "about": list(export.about),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _word(word: Word) -> Any:
    if all(isinstance(part, str) for part in word):
        return "".join(part for part in word if isinstance(part, str))
    return [{"secret": part.variable} if isinstance(part, Slot) else part for part in word]
