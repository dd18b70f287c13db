"""A run whose logs and model answers try to break out of whatever shows them."""

from pathlib import Path

from parts.made_run import BASELINE, MadeRun, facts, hypothesis, out_of_memory, verdict

from moeagent.memory.ledger import Incumbent, Note, RejectedIdea
from moeagent.memory.records import ConfigChange, VerdictKind
from moeagent.memory.run_folder import RunFolder

HOSTILE = {
    "html": "<script>window.broken=1</script><img src=https://example.invalid/x onerror=window.broken=2>",
    "attribute": '"><b onclick="window.broken=3">x</b>',
    "ansi": "\x1b[31mred\x1b[0m\x07\x1b]8;;https://example.invalid\x1b\\link\x1b]8;;\x1b\\",
    "markup": "[bold red]not markup[/bold red] [/usr/lib] [link=https://example.invalid]x[/link]",
    "template": "{{ 7 * 7 }} {% for x in y %} ${7*7}",
    "markdown": "``` | a | [x](https://example.invalid) <!-- --> *b*\n# head",
    "bidi": "abc\u202e txt.exe \u0000 \ud83d\ude00 \udcff".encode("utf-16", "surrogatepass").decode(
        "utf-16", "ignore"
    ),
    "huge": "A" * 200_000,
}


def write_hostile_run(root: Path, run_id: str = "hostile") -> RunFolder:
    """Hostile text at every place where text of others may stand."""
    text = " ".join(HOSTILE.values())
    run = MadeRun(root, run_id)
    run.decide(facts().model_copy(update={"problems": (text,)}))
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.launch(BASELINE, log=text)
    change = ConfigChange(set_flags={"--chat-template": HOSTILE["html"]}, set_env={"X": HOSTILE["attribute"]})
    run.decide(hypothesis(1, change, BASELINE, statement=text, reason=text, refuted_by=text, risk_why=text))
    failure = out_of_memory(text).model_copy(update={"explanation": text})
    run.launch(BASELINE.apply(change), "H1", diagnosis=failure, log=f"first\nsecond\n{text}\nlast")
    run.decide(verdict(1, VerdictKind.BLOCKED, 0.0).model_copy(update={"reason": text}))
    run.decide(RejectedIdea(statement=text, change=change, reason=text, source="model"))
    run.decide(Note(about=HOSTILE["html"], text=text))
    return run.close()
