"""What an effect of the loop is, in the words that status, the live view and the replay share."""

from typing import Any

from moeagent.memory.tape.lines import Entry

WORDS = {
    "survey": "surveying the host",
    "findings": "asking what earlier runs know",
    "start": "starting {launch}",
    "calibrate": "calibrating prompts on {launch}",
    "outputs": "checking the output of {launch}",
    "stop": "stopping {launch}",
    "complete": "waiting for the language model",
    "approve": "waiting for approval",
    "clock": "looking at the clock",
}


def effect_text(entry: Entry) -> str:
    """What the loop waits for after this request."""
    kind, request = entry.kind, entry.body["request"]
    launch = request.get("launch", "")
    if kind == "load":
        spec: dict[str, Any] = request.get("spec", {})
        return f"measuring {launch} at concurrency {spec.get('concurrency')}, {spec.get('requests')} requests"
    return WORDS.get(kind, kind).format(launch=launch)
