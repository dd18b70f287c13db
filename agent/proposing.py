"""Who proposes in this campaign, and what a language model may look up."""

from moeagent.agent.loop import Loop
from moeagent.agent.own_ideas import OwnIdeasFirst
from moeagent.agent.proposers.fallback import FallbackProposer
from moeagent.agent.proposers.model import ModelProposer
from moeagent.agent.settings import LimitSettings
from moeagent.agent.validation import problems_of
from moeagent.prompts.loader import Prompts
from moeagent.tools.llm.client import ChatModel
from moeagent.tools.llm.records import CallLimits, Endpoint

MOST_LINES = 20


def seat_proposer(loop: Loop) -> None:
    """Give the turn to whom the settings name: the engineer's own ideas, a language model, the playbook."""
    loop.proposer, loop.chat = loop.playbook, None
    _let_model_propose(loop)
    if loop.settings.idea:
        loop.proposer = OwnIdeasFirst(loop.settings.idea, loop.proposer, loop.predictor)


def _let_model_propose(loop: Loop) -> None:
    """The configured language model, with the playbook behind it."""
    settings = loop.settings.llm
    if settings.base_url is None:
        return
    endpoint = Endpoint(
        base_url=settings.base_url,
        model=settings.model,
        deadline_s=settings.timeout_s,
        price_per_million_input=settings.price_per_million_input,
        price_per_million_output=settings.price_per_million_output,
    )
    loop.chat = ChatModel(endpoint, bounds(loop.settings.limits), loop.world.complete)
    look_ups = {
        "findings": lambda query: findings(loop, query),
        "log_search": lambda query: log_search(loop, query),
        "gpu_state": lambda query: gpu_state(loop),
    }
    model = ModelProposer(
        loop.chat,
        loop.playbook,
        validate=lambda config: problems_of(config, loop),
        predictor=loop.predictor,
        look_ups=look_ups,
        prompts=Prompts(loop.settings.prompt),
    )
    loop.proposer = FallbackProposer(model, loop.playbook)


def bounds(limits: LimitSettings) -> CallLimits:
    """What the language model may take of the run's limits."""
    money = limits.money if limits.llm_money is None else limits.llm_money
    return CallLimits(calls=limits.llm_calls, tokens=limits.llm_tokens, money=money, wall_s=limits.llm_wall_s)


def renew_model(loop: Loop) -> None:
    """After a change of the limits: a model that one of them had silenced is asked again."""
    if loop.chat is not None:
        loop.chat.renew(bounds(loop.settings.limits))


def findings(loop: Loop, query: str) -> str:
    """What earlier runs settled, as far as it mentions the query's words."""
    words = query.lower().split()
    told = [f"{p.run} ({p.match}): {p.kind.value}: {p.reason}" for p in loop.surveyed.priors]
    found = [line for line in told if all(word in line.lower() for word in words)]
    return "\n".join(found[:MOST_LINES]) or "no earlier run says anything about that"


def log_search(loop: Loop, query: str) -> str:
    """Lines of this run's server logs that contain the query, the newest launch first."""
    found: list[str] = []
    for launch in reversed(loop.ledger.launches):
        lines = loop.world.text(launch.log).split("\n")
        hits = [(n, line) for n, line in enumerate(lines, 1) if query.lower() in line.lower()]
        found += [f"{launch.id} line {n}: {line[:200]}" for n, line in hits[:MOST_LINES]]
    return "\n".join(found[:MOST_LINES]) or "no line of any log contains that"


def gpu_state(loop: Loop) -> str:
    """The GPUs as the survey saw them."""
    gpus = [
        f"{g.index}: {g.name}, {g.memory_used_mib} of {g.memory_mib} MiB used"
        for g in loop.surveyed.host.gpus
    ]
    return "\n".join(gpus) or "the host has no GPU"
