"""The language model's turn: it sees the briefing, may look things up, and answers with one hypothesis."""

from collections.abc import Callable, Mapping

from moeagent.agent.proposers.answer import AnswerError, ModelAnswer, change_of, clean, draft_of
from moeagent.agent.proposers.beliefs import excess_risk
from moeagent.agent.proposers.briefing import briefing
from moeagent.agent.proposers.drafting import CANARY_RISK, canary
from moeagent.agent.proposers.look_ups import MAX_RESULT, LookUp, look_ups_of
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Draft, Predictor
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.vetting import problems_of
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.records import ServerConfig
from moeagent.prompts.loader import Prompts
from moeagent.tools.llm.client import ChatModel
from moeagent.tools.llm.parsing import UnusableAnswerError
from moeagent.tools.llm.records import Message, Role

MAX_LOOK_UPS = 4
MAX_REJECTIONS = 2
SURE_DEATH = 0.9
"""An idea that the predictor gives this chance of a crash is turned down; what is merely tight may run."""

Validate = Callable[[ServerConfig], list[str]]
"""Problems of a whole configuration by the installed engine's own rules; empty when there are none."""


class NoIdeaError(Exception):
    """The model's turn brought no idea; the message says why, for the log."""


class ModelProposer:
    """Asks a chat model for the next hypothesis and checks what comes back."""

    def __init__(
        self,
        chat: ChatModel,
        playbook: Playbook,
        *,
        validate: Validate,
        predictor: Predictor | None = None,
        look_ups: Mapping[str, LookUp] | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        self.chat, self.playbook = chat, playbook
        self._validate, self._predictor = validate, predictor
        self._look_ups = dict(look_ups or {})
        self._prompts = prompts or Prompts()

    @property
    def name(self) -> str:
        """The model's name, for the log."""
        return f"model {self.chat.endpoint.model}"

    def propose(self, view: CampaignView) -> Draft:
        """One vetted hypothesis.

        Raises NoIdeaError when this turn brought none, ModelEndpointError when the endpoint failed or a limit
        is reached.
        """
        question = self.playbook.question(view)
        turn = _Turn(question, look_ups_of(question, self._predictor, self._look_ups), self._prompts)
        turn.begin(briefing(view, question.limits, self.playbook.ranking(view)))
        while True:
            try:
                answer = self.chat.ask(turn.messages, ModelAnswer)
            except UnusableAnswerError as error:
                raise NoIdeaError(f"the model's answer could not be used: {error}") from error
            if answer.action == "nothing":
                raise NoIdeaError(f"the model has no idea: {clean(answer.reason, 200) or 'no reason given'}")
            if answer.action == "look_up":
                turn.look_up(answer)
                continue
            try:
                return self._vetted(answer, question)
            except AnswerError as error:
                turn.reject(answer, str(error))

    def _vetted(self, answer: ModelAnswer, question: Question) -> Draft:
        """The draft of the answer; raises AnswerError with everything that speaks against it."""
        change = change_of(answer, question)
        problems = problems_of(change, question)
        child = question.base.apply(change)
        problems = problems or self._validate(child)
        if problems:
            raise AnswerError("\n".join(f"- {clean(p, 300)}" for p in problems))
        risk, why = self._risk(question.base, child)
        if risk >= SURE_DEATH:
            raise AnswerError(f"- it would die: {why}")
        effects = self._predictor.predict_effects(question.base, child) if self._predictor else ()
        draft = draft_of(answer, change, question, effects)
        rungs = canary(question.view.workload.ladder) if risk >= CANARY_RISK else ()
        return draft.model_copy(update={"risk": round(risk, 3), "risk_why": why, "canary": rungs})

    def _risk(self, base: ServerConfig, child: ServerConfig) -> tuple[float, str]:
        if self._predictor is None:
            return 0.0, ""
        risk, why = self._predictor.risk(child)
        return excess_risk(risk, self._predictor.risk(base)[0]), why


class _Turn:
    """The conversation of one turn, and what is left of its look-ups and attempts."""

    def __init__(self, question: Question, look_ups: Mapping[str, LookUp], prompts: Prompts) -> None:
        self.question, self._tools, self._prompts = question, look_ups, prompts
        self.messages: list[Message] = []
        self._look_ups = self._rejections = 0

    def begin(self, variables: dict[str, str]) -> None:
        """The first two messages."""
        names = ", ".join(sorted(self._tools))
        system = self._prompts.load("engineer").render(engine=self.question.base.engine, look_ups=names)
        self._add("system", system)
        self._add("user", self._prompts.load("turn").render(**variables))

    def look_up(self, answer: ModelAnswer) -> None:
        """Answers the model's question; raises NoIdeaError when it asks without end."""
        self._look_ups += 1
        if self._look_ups > MAX_LOOK_UPS + 1:
            raise NoIdeaError(f"the model went on looking things up after {MAX_LOOK_UPS} look-ups")
        tool, query = clean(answer.tool, 40), clean(answer.query, 200)
        left = MAX_LOOK_UPS - self._look_ups
        self._add("assistant", f'{{"action": "look_up", "tool": "{tool}", "query": "{query}"}}')
        if left < 0:
            result = "no look-up is left in this turn: propose now"
        elif tool in self._tools:
            result = self._tools[tool](query)[:MAX_RESULT].replace("</data>", "")
        else:
            result = f"there is no look-up of this name; there are {', '.join(sorted(self._tools))}"
        prompt = self._prompts.load("looked_up")
        self._add("user", prompt.render(tool=tool, query=query, result=result, left=str(max(left, 0))))

    def reject(self, answer: ModelAnswer, problems: str) -> None:
        """Tells the model why; raises NoIdeaError when its attempts are used up."""
        self._rejections += 1
        if self._rejections > MAX_REJECTIONS:
            raise NoIdeaError(
                f"the model's ideas were turned down {self._rejections} times, last: {clean(problems, 200)}"
            )
        self._add("assistant", answer.model_dump_json())
        left = str(MAX_REJECTIONS - self._rejections + 1)
        self._add("user", self._prompts.load("rejected").render(problems=problems, left=left))

    def _add(self, role: Role, content: str) -> None:
        self.messages.append(Message(role=role, content=content))
