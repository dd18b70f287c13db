"""The language model's word on a failure that no signature names: it may point to a line, nothing more.

The log is hostile input: it reaches the model as data, and of the answer only a known class, a line that
stands in the log and remedies survive, which pass the same checks as any other remedy.
"""

import re

from moeagent.agent.loop import Loop
from moeagent.memory.errors import ModelEndpointError
from moeagent.memory.records import Diagnosis
from moeagent.prompts.loader import Prompt, Prompts
from moeagent.tools.diagnosis.catalogue import load_catalogue
from moeagent.tools.diagnosis.selection import ModelAnswer, accept_model_answer, select_lines
from moeagent.tools.llm.client import ChatModel
from moeagent.tools.llm.parsing import UnusableAnswerError
from moeagent.tools.llm.records import Message

SURE = 0.5
"""The most that an unknown message gets from structure alone: what is above it, the clock or the whole log
decided."""
HEALTHY = "benign.none"
_END = re.compile("</data", re.IGNORECASE)


def is_unsure(found: Diagnosis) -> bool:
    """Whether no message was recognised and the structure of the log says little."""
    return found.by == "structure" and found.confidence <= SURE


def second_opinion(loop: Loop, launch: str, log_text: str, found: Diagnosis) -> Diagnosis:
    """The model's diagnosis where one was found that holds, else what was found; a note says which."""
    if loop.chat is None or loop.chat.closed or not is_unsure(found):
        return found
    try:
        told = ask(loop.chat, loop.engine.name, log_text, found, Prompts(loop.settings.prompt).load("cause"))
    except (ModelEndpointError, UnusableAnswerError) as error:
        loop.note(launch, f"the language model named no cause, the log decides: {one_line(error)}")
        return found
    if told is None:
        loop.note(launch, "the language model pointed to no line of the log; its answer is not used")
    return told or found


def ask(chat: ChatModel, engine: str, log_text: str, found: Diagnosis, prompt: Prompt) -> Diagnosis | None:
    """One question. Raises ModelEndpointError without an answer, UnusableAnswerError for one of no form."""
    guess = f"{found.failure_class} ({found.confidence:.0%})"
    text = prompt.render(engine=engine, classes=classes(), found=guess, lines=shown(log_text))
    answer = chat.ask([Message(role="user", content=text)], ModelAnswer)
    accepted = accept_model_answer(log_text, answer.model_dump(by_alias=True))
    return None if accepted is None or accepted.failure_class == HEALTHY else accepted


def classes() -> str:
    """Every class of failure with its meaning, a line each."""
    known = (c for c in load_catalogue().classes if c.name != HEALTHY)
    return "\n".join(f"- {c.name}: {c.means}" for c in known)


def shown(log_text: str) -> str:
    """The chosen lines with their numbers; none can end the data it stands in."""
    return "\n".join(f"{no}: {_inert(line)}" for no, line in select_lines(log_text))


def _inert(line: str) -> str:
    return _END.sub("(/data", "".join(c if c.isprintable() else " " for c in line))


def one_line(error: Exception) -> str:
    """An error's message for a note."""
    return " ".join(str(error).split())[:300]
