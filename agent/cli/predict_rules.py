"""What the engine itself would say of a configuration that is only predicted."""

from typing import Any

from moeagent.memory.records import EngineFacts, Gpu, HostFacts
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.registry import engine_by_name
from moeagent.tools.engines.validate import validate_config
from moeagent.tools.predict.comparison import Candidate, Comparison
from moeagent.tools.predict.records import Machine, ModelShape, Unknown
from moeagent.tools.predict.rule_facts import rule_facts


def catalogued(engine: str, version: str | None) -> EngineFacts:
    """An engine that nobody could ask: its flags as the catalogue has them, newest version by default."""
    return engine_by_name(engine).facts({}, EngineInstall(version=version))


def by_the_engine(
    answer: Comparison, engine: EngineFacts, machine: Machine | Unknown, model: ModelShape | Unknown
) -> Comparison:
    """The answer with what the engine would refuse, and what it would ignore or overwrite."""
    host, facts = _host(machine), rule_facts(model)
    second = _told(answer.second, engine, host, facts) if answer.second else None
    named = f"{engine.engine} {engine.version or '(version unknown)'}, {engine.source}"
    return answer.model_copy(
        update={
            "first": _told(answer.first, engine, host, facts),
            "second": second,
            "flags_checked": named,
        }
    )


def _told(candidate: Candidate, engine: EngineFacts, host: HostFacts, model: dict[str, Any]) -> Candidate:
    config = candidate.config
    found = validate_config(config, engine, host=host, model=model, trusted_env=config.env)
    return candidate.model_copy(
        update={
            "engine_refuses": tuple(problem.message for problem in found if problem.fatal),
            "engine_remarks": tuple(problem.message for problem in found if not problem.fatal),
        }
    )


def _host(machine: Machine | Unknown) -> HostFacts:
    """As far as rules ask: the number of GPUs and their compute capability."""
    if isinstance(machine, Unknown) or machine.gpu_name is None:
        return HostFacts(name="", machine_id="")
    capability = machine.spec.sm if machine.spec else None
    gpus = tuple(
        Gpu(index=i, name=machine.gpu_name, memory_mib=machine.memory_mib, compute_capability=capability)
        for i in range(machine.gpu_count)
    )
    return HostFacts(name="", machine_id="", gpus=gpus)
