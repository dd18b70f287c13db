"""A rung as the job that the load generator reads."""

import json
from typing import Any

from moeagent.tools.load.spec import Api, RungSpec, Target, apis, merged, vocabulary

OPEN_LOOP_CONNECTIONS = 4096
"""Requests in flight at most in open loop; there the concurrency is how many connections wait ready."""


def build_job(target: Target, spec: RungSpec, *, deadline_s: float) -> dict[str, Any]:
    """The job of one rung, as `loadgen.py` documents it."""
    api = apis()[target.api]
    return {
        "url": target.root,
        "path": api.path,
        "headers": headers(target),
        "verify_tls": target.verify_tls,
        "ca_file": target.ca_file,
        "keep_alive": target.keep_alive,
        "template": body_template(api, target, spec),
        "cumulative": api.cumulative and not spec.keep_text,
        "repeats": api.cumulative,
        "prompts": [p.model_dump() for p in spec.prompts],
        "random": {
            **spec.random.model_dump(),
            "seed": spec.seed,
            "vocabulary": vocabulary(),
            "out": spec.output_len,
        },
        "requests": request_count(spec),
        "duration_s": spec.duration_s,
        "concurrency": spec.concurrency,
        "max_in_flight": OPEN_LOOP_CONNECTIONS if spec.arrivals else spec.concurrency,
        "arrivals": list(spec.arrivals.times_s) if spec.arrivals else None,
        "exact": spec.exact_length,
        "keep_text": spec.keep_text,
        "warmup": warm_up(spec),
        "flush": spec.flush_path,
        "timeouts": {
            "connect": spec.connect_timeout_s,
            "first": spec.first_byte_timeout_s,
            "stall": spec.stall_timeout_s,
        },
        "deadline_s": deadline_s,
        "processes": min(spec.processes, spec.concurrency),
        "realtime": spec.realtime,
        "stop": spec.stop.model_dump(),
    }


def request_count(spec: RungSpec) -> int:
    """Requests of the rung, 0 when only its duration counts; no more than there are prepared prompts."""
    wanted = len(spec.arrivals.times_s) if spec.arrivals else spec.requests or len(spec.prompts)
    return min(wanted, len(spec.prompts)) if spec.prompts else wanted


def headers(target: Target) -> dict[str, str]:
    """Headers of every request; the bearer token is in no message and no result."""
    if target.api_key is None:
        return {}
    return {"Authorization": f"Bearer {target.api_key.get_secret_value()}"}


def body_template(api: Api, target: Target, spec: RungSpec) -> dict[str, Any]:
    """The request body with its placeholders left in."""
    body: dict[str, Any] = dict(api.template)
    uses_ids = spec.random.ids is not None or any(isinstance(p.prompt, list) for p in spec.prompts)
    if uses_ids and api.token_ids_key:
        text_key, ids_key = api.token_ids_key
        body = {ids_key if key == text_key else key: value for key, value in body.items()}
    body = merged(body, api.exact) if spec.exact_length else body
    body = merged(body, target.extra_body)
    named: dict[str, Any] = json.loads(json.dumps(body).replace('"$MODEL"', json.dumps(target.model)))
    return named


def warm_up(spec: RungSpec) -> dict[str, Any] | None:
    """The warm-up's part of the job."""
    plan = spec.warmup
    if plan is None:
        return None
    return {
        "min_waves": plan.min_waves, "max_waves": plan.max_waves, "tolerance": plan.tolerance,
        "max_s": plan.max_s, "out": min(plan.output_len, spec.output_len),
    }  # fmt: skip
