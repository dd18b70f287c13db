"""What the language model is told: the view in compact words, the same words for the same view."""

import json
from collections.abc import Iterable, Iterator, Mapping

from moeagent.agent.proposers.answer import clean
from moeagent.agent.proposers.limits import Limit
from moeagent.agent.proposers.ranking import Ranked
from moeagent.agent.proposers.view import CampaignView, PriorFinding, Rejection
from moeagent.memory.records import ConfigChange, Hypothesis, Rung, ServerConfig

_TOP = 8
"""Ideas of the ranking that are shown."""
_MODEL_FIELDS = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "kv_lora_rank",
    "n_routed_experts", "num_experts", "num_local_experts", "num_experts_per_tok", "num_nextn_predict_layers",
    "quantization_config",
)  # fmt: skip


def briefing(view: CampaignView, limits: tuple[Limit, ...], ranking: tuple[Ranked, ...]) -> dict[str, str]:
    """The variables of the prompt `turn`."""
    return {
        "goal": _goal(view),
        "workload": _json(view.workload.model_dump(mode="json", exclude_none=True)),
        "machine": _machine(view),
        "model": _model(view),
        "engine": f"{view.engine.engine} {view.engine.version or 'of unknown version'}",
        "baseline": spelled_config(view.baseline),
        "incumbent": spelled_config(view.incumbent),
        "rungs": _lines(_rung(r) for r in view.rungs_of(view.incumbent)),
        "limits": _lines(f"- {x.name} ({x.strength:.0%}): {x.evidence}" for x in limits),
        "log": _lines(_outcome(h, view) for h in view.hypotheses),
        "priors": _lines(_prior(p) for p in view.priors),
        "rejections": _lines(_rejection(r) for r in view.rejections),
        "ranking": _lines(
            f"- {r.candidate.statement} ({spelled(r.candidate.change)}): "
            f"{r.gain.mean:+.1%} ({r.gain.low:+.1%} to {r.gain.high:+.1%}), risk {r.candidate.risk:.0%}"
            for r in ranking[:_TOP]
        ),
        "space": _json(view.space.model_dump(mode="json", exclude_defaults=True)),
        "budget": _json(view.budget.model_dump(mode="json", exclude_none=True)),
    }


def spelled(change: ConfigChange) -> str:
    """The change in one line."""
    parts = [f"{k}={v}" if v is not True else k for k, v in change.set_flags.items()]
    parts += [f"{k}={v}" for k, v in change.set_env.items()]
    parts += [f"without {k}" for k in (*change.remove_flags, *change.remove_env)]
    return " ".join(parts)


def spelled_config(config: ServerConfig) -> str:
    """The configuration in one line."""
    return spelled(ServerConfig(engine=config.engine).diff(config)) or "the engine's defaults"


def _lines(items: Iterable[str]) -> str:
    return "\n".join(items) or "none"


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True) if value else "none"


def _goal(view: CampaignView) -> str:
    bounds = [
        f"{c.metric} {c.percentile or ''} within {c.bound:g}".replace("  ", " ")
        for c in view.goal.constraints
    ]
    smallest = f"an effect below {view.goal.min_effect:.0%} is not worth a change"
    return f"{view.goal.name}; {smallest}" + (f"; {', '.join(bounds)}" if bounds else "")


def _machine(view: CampaignView) -> str:
    host = view.host
    gpus: dict[str, int] = {}
    for gpu in host.gpus:
        name = f"{clean(gpu.name, 80)}, {gpu.memory_mib} MiB, compute capability {gpu.compute_capability}"
        gpus[name] = gpus.get(name, 0) + 1
    parts = [f"{count} x {name}" for name, count in gpus.items()] or ["no GPU"]
    linked = "NVLink" if " NV" in (host.topology or "") else "PCIe"
    parts += [linked] if len(host.gpus) > 1 else []
    parts += [f"{host.cpu_cores} CPU cores"] if host.cpu_cores else []
    return "; ".join(parts)


def _model(view: CampaignView) -> str:
    config: Mapping[str, object] = {**view.model.config, **(view.model.config.get("text_config") or {})}
    fields = {name: config[name] for name in _MODEL_FIELDS if name in config}
    size = f"{view.model.size_gib:g} GiB" if view.model.size_gib else "size unknown"
    return clean(f"{view.model.architecture or 'architecture unknown'}, {size}, {_json(fields)}", 1500)


def _rung(rung: Rung) -> str:
    parts = [f"- concurrency {rung.concurrency}: {rung.output_tok_s:.1f} output tok/s"]
    for name, times in (("TTFT", rung.ttft_ms), ("TPOT", rung.tpot_ms)):
        if times is not None:
            parts.append(f"{name} p50 {times.p50:.1f} p99 {times.p99:.1f} ms")
    return ", ".join(parts)


def _outcome(hypothesis: Hypothesis, view: CampaignView) -> str:
    verdict = view.verdict(hypothesis.id)
    head = f"- {hypothesis.id} [{hypothesis.category}] {spelled(hypothesis.change)}"
    assumed = f"assumed: {clean(hypothesis.reason, 200)}"
    if verdict is None:
        return f"{head}; {assumed}; under way"
    effect = verdict.goal_effect
    measured = f" {effect.effect:+.1%} ({effect.low:+.1%} to {effect.high:+.1%})" if effect else ""
    came = f"{verdict.kind}{measured}: {clean(verdict.reason, 200)}"
    return "; ".join([head, assumed, came, *_failures(hypothesis, view)])


def _failures(hypothesis: Hypothesis, view: CampaignView) -> Iterator[str]:
    """How its servers died, and what was tried against that."""
    for launch in view.launches:
        if launch.hypothesis == hypothesis.id and launch.diagnosis is not None:
            line = clean(launch.diagnosis.root_line or launch.diagnosis.explanation, 160)
            yield f"{launch.id} died of {launch.diagnosis.failure_class} ({line})"
    for pivot in view.pivots:
        if pivot.hypothesis == hypothesis.id:
            yield f"then {clean(pivot.remedy, 120)}"


def _prior(finding: PriorFinding) -> str:
    where = f"{clean(finding.scope, 120)}; {clean(finding.closeness, 120) or finding.match + ' match'}"
    return f"- {spelled(finding.change)}: {finding.kind}, {clean(finding.reason, 200)} [{where}]"


def _rejection(rejection: Rejection) -> str:
    return f"- {spelled(rejection.change)}: {clean(rejection.reason, 200)}"
