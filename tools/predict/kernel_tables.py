"""Step times from aiconfigurator-core's measured kernels, an optional extra (`moeagent[kernels]`)."""

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from moeagent.memory.records import Workload
from moeagent.tools.predict import tables
from moeagent.tools.predict.batch import Setting
from moeagent.tools.predict.predictor import TimesOf
from moeagent.tools.predict.records import Unknown
from moeagent.tools.predict.speculation import accepted_tokens
from moeagent.tools.predict.step_times import StepTimes

_SYSTEMS = {
    "rtx_pro_6000": "rtx_pro_6000_server",
    "h200": "h200_sxm",
    "h100": "h100_sxm",
    "b200": "b200_sxm",
    "b300": "b300_sxm",
    "l40s": "l40s",
    "a100": "a100_sxm",
}
_MOE_MODES = {
    "nvfp4": "nvfp4",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "int4": "int4_wo",
    "mxfp4": "w4a16_mxfp4",
}


class TableTimes:
    """Times by the package's own engine, compiled for one configuration."""

    source = "measured kernels, table look-up"

    def __init__(self, handle: Any, at: Setting, workload: Workload) -> None:
        self._handle = handle
        self._settings = at.settings
        self._workload = workload

    def decode_ms(self, running: float) -> dict[str, float]:
        """See StepTimes; the package gives one figure for the step."""
        batch = max(round(running / self._settings.attention_dp / self._settings.pp), 1)
        step = self._handle.decode_step_latency(batch, self._workload.input_len, self._workload.output_len)
        return {"decode step": step / accepted_tokens(self._settings)}

    def prefill_ms(self, prompts: float) -> float:
        """See StepTimes."""
        whole = max(round(prompts), 1)
        return float(self._handle.predict_prefill_latency(whole, self._workload.input_len)) * prompts / whole


def table_times(model_folder: Path) -> TimesOf | Unknown:
    """A maker of step times for a model folder with its config.json; Unknown when the extra is not installed.

    The maker raises LookupError when the package has no measured kernels for the configuration.
    """
    if find_spec("aiconfigurator_core") is None:
        return Unknown(what="a look-up in measured kernels", why="install moeagent[kernels] for it")
    if not (model_folder / "config.json").is_file():
        return Unknown(what="a look-up in measured kernels", why=f"{model_folder} holds no config.json")

    def make(at: Setting, workload: Workload) -> StepTimes:
        return TableTimes(_compile(at, model_folder), at, workload)

    return make


def _compile(at: Setting, model_folder: Path) -> Any:
    from aiconfigurator_core.sdk import EngineHandle

    settings, reference = at.settings, tables.kernel_references()[at.spec.kernels]
    if reference.bandwidth_tb_s != at.spec.bandwidth_tb_s or reference.tflops != at.spec.tflops:
        raise LookupError(f"no measured kernels of the {at.spec.name} itself")
    ep = settings.expert_ep
    logging.getLogger("aiconfigurator_core").setLevel(logging.ERROR)
    try:
        handle = EngineHandle.compile(
            str(model_folder),
            _SYSTEMS[at.spec.kernels],
            settings.engine,
            tp_size=settings.attention_tp,
            pp_size=settings.pp,
            attention_dp_size=settings.attention_dp,
            moe_tp_size=settings.expert_ranks // ep,
            moe_ep_size=ep,
            moe_quant_mode=_MOE_MODES.get(at.model.formats.experts),
            nextn=settings.draft_tokens - 1,
        )
        handle.decode_step_latency(1, 128, 128)
    except (RuntimeError, ValueError, KeyError, TypeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise LookupError(f"no measured kernels for this configuration: {reason}") from error
    return handle
