"""Reads rows of the table of published measurements into what the predictor takes."""

import csv
import functools
import json
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from moeagent.memory.errors import InputError
from moeagent.memory.records import ServerConfig, Workload
from moeagent.tools.predict.machine import machine_from_name
from moeagent.tools.predict.model_config import model_from_config
from moeagent.tools.predict.records import Machine, ModelShape, Unknown

FIXTURES = Path(__file__).parents[2] / "fixtures" / "predict"
_DECODE_OUTPUT = 512
_MODEL_LEN = 16384  # the rows do not say; enough for most of them, so that no verdict hangs on it
_PREFILL = re.compile(r"prefill ~?(\d+) tok/s")


class SkippedRow(Exception):  # noqa: N818 - a row that cannot be used is an outcome
    """The row says too little, or something that the predictor does not claim to know."""


_ONESHOT = re.compile("one-?shot", re.IGNORECASE)


@dataclass(frozen=True)
class Case:
    """One row as a prediction: what is asked, and what was measured."""

    row: dict[str, str]
    machine: Machine
    model: ModelShape
    config: ServerConfig
    workload: Workload
    metric: str
    """decode: tok/s without prefill; serve: tok/s of the closed loop; prefill: input tok/s of one prompt."""
    measured: float

    @property
    def id(self) -> str:
        return self.row["id"]


@functools.cache
def words() -> dict[str, list[dict]]:
    """The table of how prose is read."""
    return tomllib.loads((FIXTURES / "rows.toml").read_text())


def read_table(path: Path) -> list[dict[str, str]]:
    """Rows in the order of the file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def case_of(row: dict[str, str]) -> Case:
    """The prediction that a row asks for. Raises SkippedRow with the reason why it asks for none."""
    metric, measured = _measured(row)
    config = _config(row)
    return Case(
        row=row,
        machine=_machine(row),
        model=_model(row["model"], row["quant"]),
        config=config,
        workload=_workload(row, metric),
        metric=metric,
        measured=measured,
    )


def parent_of(case: Case) -> Case:
    """The case that the row's change was applied to. Raises SkippedRow for a change that is not a knob."""
    rule = _first("change", case.row["change"])
    if rule is None:
        raise SkippedRow(f"the change is not a knob: {case.row['change'] or 'none'}")
    flags = {k: v for k, v in case.config.flags.items() if k not in rule["drop"]}
    env = {k: v for k, v in case.config.env.items() if k not in rule["drop"]}
    parent = case.config.model_copy(update={"flags": flags, "env": env})
    machine = case.machine
    if "oneshot" in machine.fabric and _ONESHOT.search(case.row["change"]):
        machine = machine.model_copy(update={"fabric": "pcie5"})
    if parent == case.config and machine == case.machine:
        raise SkippedRow(f"the change is not visible in the flags: {case.row['change']}")
    return replace(case, config=parent, machine=machine)


def _measured(row: dict[str, str]) -> tuple[str, float]:
    prefill = _PREFILL.search(row["notes"])
    if prefill:
        return "prefill", float(prefill[1])
    if not row["output_tok_s"]:
        raise SkippedRow("no speed in the row")
    context = row["output_len_or_ctx"]
    if not row["input_len"] and not context:
        raise SkippedRow("neither input nor output length is given")
    decode = "ctx" in context or (not row["input_len"].isdigit() and not row["ttft_ms"])
    return ("decode" if decode else "serve"), float(row["output_tok_s"])


def _machine(row: dict[str, str]) -> Machine:
    if not row["n_gpus"].isdigit():
        raise SkippedRow("the number of GPUs is not given")
    name = re.sub(r"^\d+x", "", row["hardware"]).replace("(SM120, PCIe)", "")
    try:
        machine = machine_from_name(f"{row['n_gpus']}x {name}")
        oneshot = "sglang" in row["engine"].lower() and _ONESHOT.search(row["flags"])
        return machine.model_copy(update={"fabric": "pcie5-oneshot"}) if oneshot else machine
    except InputError:
        raise SkippedRow(f"{name.strip()} is not in the table of GPUs") from None


def _model(name: str, quant: str) -> ModelShape:
    entry = _first("model", name)
    if entry is None or "skip" in entry:
        raise SkippedRow(entry["skip"] if entry else f"no config.json for {name}")
    shape = model_from_config(
        json.loads((FIXTURES / "models" / f"{entry['config']}.json").read_text()), name=name
    )
    assert not isinstance(shape, Unknown), shape
    rule = next(
        (q for q in words()["quant"] if re.search(q["pattern"], quant, re.I) and q.get("model", "") in name),
        None,
    )
    if rule is None:
        return shape
    formats = shape.formats.model_copy(update=rule["formats"])
    return shape.model_copy(update={"formats": formats, "kv_dtype": rule.get("kv", shape.kv_dtype)})


def _config(row: dict[str, str]) -> ServerConfig:
    engine = next((e for e in ("sglang", "vllm") if e in row["engine"].lower()), "vllm")
    flags: dict[str, object] = _parallel(row, engine)
    env: dict[str, str] = {}
    text = f"{row['flags']} {row['parallel']}"
    for rule in words()["flag"]:
        found = re.search(rule["pattern"], text, re.I)
        if found:
            for key, value in rule.get(engine, {}).items():
                flags[key] = int(found[1]) if value == "$1" else value
            env |= rule.get("env", {})
    host = _first("host", row["source"])
    env |= host["env"] if host else {}
    if engine == "vllm":
        flags["--max-model-len"] = _MODEL_LEN
    return ServerConfig(engine=engine, flags=flags, env=env)


def _parallel(row: dict[str, str], engine: str) -> dict[str, object]:
    """Flags for words such as "TP8 moeTP1 EP8 DP1"; a DP that does not fit the GPUs is dropped."""
    sizes = {k: int(v) for k, v in re.findall(r"\b(TP|PP|EP|DP|DCP)(\d+)\b", row["parallel"])}
    gpus = int(row["n_gpus"]) if row["n_gpus"].isdigit() else 1
    tp = sizes.get("TP", gpus)
    flags: dict[str, object] = {"--tensor-parallel-size": tp}
    if sizes.get("PP", 1) > 1:
        flags["--pipeline-parallel-size"] = sizes["PP"]
    if sizes.get("DCP", 1) > 1:
        flags["--decode-context-parallel-size"] = sizes["DCP"]
    if sizes.get("EP", 1) > 1:
        flags |= (
            {"--enable-expert-parallel": True} if engine == "vllm" else {"--ep-size": min(sizes["EP"], tp)}
        )
    dp = sizes.get("DP", 1)
    if dp > 1 and engine == "vllm" and tp * dp <= gpus:
        flags["--data-parallel-size"] = dp
    if dp > 1 and engine == "sglang" and tp % dp == 0:
        flags |= {"--data-parallel-size": dp, "--enable-dp-attention": True}
    return flags


def _workload(row: dict[str, str], metric: str) -> Workload:
    if not row["concurrency"] and metric != "prefill":
        raise SkippedRow("the concurrency is not given")
    concurrency = int(row["concurrency"] or 1)
    output = row["output_len_or_ctx"]
    if metric == "decode":
        context = re.search(r"(\d+)k", output)
        length = (
            int(context[1]) * 1024
            if context
            else int(row["input_len"] or 0)
            if row["input_len"].isdigit()
            else 16
        )
        return Workload(input_len=max(length, 16), output_len=_DECODE_OUTPUT, ladder=(concurrency,))
    if metric == "prefill":
        thousands = re.search(r"(\d+)k", row["input_len"])
        length = int(thousands[1]) * 1024 if thousands else 8192
        return Workload(input_len=length, output_len=1, ladder=(concurrency,))
    return Workload(
        input_len=int(row["input_len"]),
        output_len=int(output) if output.isdigit() else 1024,
        ladder=(concurrency,),
        prompts_per_slot=10,
    )


def _first(table: str, text: str) -> dict | None:
    return next((entry for entry in words()[table] if re.search(entry["pattern"], text, re.I)), None)
