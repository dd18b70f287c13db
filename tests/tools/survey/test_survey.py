"""The survey: pure parsing of real outputs, and a run on this machine."""

import json
import re
from pathlib import Path

import pytest

from moeagent.memory.errors import EngineError, HostError, InputError
from moeagent.tools.engines.probing import HELP, PARSER
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.registry import embedded_llamacpp, engine_by_name
from moeagent.tools.engines.tiny_moe import write_tiny_moe
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import CommandResult
from moeagent.tools.survey.commands import survey_commands
from moeagent.tools.survey.findings import as_error
from moeagent.tools.survey.survey import Survey, parse_survey, run_survey

FIXTURES = Path(__file__).parents[2] / "fixtures"
SGLANG_DUMP = (FIXTURES / "engines" / "sglang-0.5.9-parser.txt").read_text()
UUID_A = "GPU-00000000-0000-0000-0000-00000000000a"


def nvidia(name: str) -> str:
    return (FIXTURES / "survey" / f"h200x2-{name}.txt").read_text()


def ok(text: str) -> CommandResult:
    return CommandResult(0, text.encode(), b"")


def disk(mount: str, total_kib: int, free_kib: int) -> CommandResult:
    head = "Filesystem 1024-blocks Used Available Capacity Mounted on"
    return ok(f"{head}\n/dev/sda1 {total_kib} 1 {free_kib} 1% {mount}\n")


def healthy() -> dict[str, CommandResult]:
    config = {"architectures": ["GlmMoeDsaForCausalLM"], "num_hidden_layers": 78}
    return {
        "gpus": ok(nvidia("gpus")),
        "gpu-details": ok(nvidia("q")),
        "gpu-topology": ok(nvidia("topo")),
        "gpu-p2p": ok(nvidia("p2p")),
        "gpu-processes": ok(""),
        "gpu-process-users": ok(""),
        "cpu-cores": ok("32\n"),
        "ram": ok("MemTotal:       263998500 kB\nMemFree:  1 kB\nMemAvailable:   263402768 kB\n"),
        "disk": disk("/models", 1_000_000_000, 900_000_000),
        "shm": disk("/dev/shm", 268_435_456, 268_435_456),
        "limits": ok("1048576\nunlimited\n"),
        "machine-id": ok("abc\nbox\n"),
        "iommu": ok("0\n"),
        "xid": ok(""),
        "model-kind": ok("directory\n"),
        "model-config": ok(json.dumps(config)),
        "model-files": ok("-rw-r--r-- 1 0 0 5368709120 Nov 1 10:00 ./model-00001-of-00002.safetensors\n"
                          "-rw-r--r-- 1 0 0 5368709120 Nov 1 10:00 ./model-00002-of-00002.safetensors\n"),
        "model-index": ok('"model-00001-of-00002.safetensors"\n"model-00002-of-00002.safetensors"\n'),
        PARSER: ok(SGLANG_DUMP),
    }  # fmt: skip


def parse(
    outputs: dict[str, CommandResult], engine: str = "sglang", model: str | None = "/models/m"
) -> Survey:
    return parse_survey(
        outputs,
        engine=engine_by_name(engine),
        install=EngineInstall(),
        model=model,
        host_name="gpu1",
        simulated=False,
    )


def whats(found: Survey) -> list[tuple[str, str]]:
    return [(finding.severity, finding.what) for finding in found.findings]


def test_a_healthy_machine_has_facts_and_no_findings() -> None:
    found = parse(healthy())
    assert found.findings == ()
    assert as_error(found.findings) is None
    host = found.host
    assert [(g.index, g.name, g.memory_mib, g.compute_capability) for g in host.gpus] == [
        (0, "NVIDIA H200", 143771, "9.0"),
        (1, "NVIDIA H200", 143771, "9.0"),
    ]
    assert (host.driver, host.cuda, host.cpu_cores) == ("580.159.04", "13.0", 32)
    assert (host.ram_gib, host.shm_gib, host.disk_free_gib) == (251.7686, 256.0, 858.3069)
    assert host.topology is not None
    assert "\x1b" not in host.topology
    assert "NV18" in host.topology
    assert found.engine.version == "0.5.9"
    assert found.model is not None
    assert (found.model.architecture, found.model.size_gib) == ("GlmMoeDsaForCausalLM", 10.0)
    health = found.health[0]
    assert (health.ecc_uncorrected, health.pcie_width, health.power_limit_w) == (0, (16, 16), 700.0)
    assert (health.sm_clock_mhz, health.sm_clock_max_mhz, health.throttle_reasons) == (345, 1980, ())


def test_the_identity_of_a_machine_is_stable_and_hides_what_it_is_made_of() -> None:
    one, other = healthy(), healthy()
    other["machine-id"] = ok("def\nbox\n")
    assert parse(one).host.machine_id == parse(healthy()).host.machine_id
    assert parse(one).host.machine_id != parse(other).host.machine_id
    assert "abc" not in parse(one).host.machine_id


def test_gpu_memory_held_by_somebody_else_names_pid_user_and_size() -> None:
    outputs = healthy()
    outputs["gpus"] = ok(nvidia("gpus").replace("143771, 0,", "143771, 51234,", 1))
    outputs["gpu-processes"] = ok(f"{UUID_A}, 4242, python3, 51200\n")
    outputs["gpu-process-users"] = ok("   4242 alice\n")
    found = parse(outputs)
    error = as_error(found.findings)
    assert isinstance(error, HostError)
    assert "GPU 0 holds 51234 of 143771 MiB already, by pid 4242 (python3, user alice) 51200 MiB" in str(
        error
    )
    assert "CUDA_VISIBLE_DEVICES" in str(error)


def test_memory_held_by_a_process_in_another_container() -> None:
    outputs = healthy()
    outputs["gpus"] = ok(nvidia("gpus").replace("143771, 0,", "143771, 51234,", 1))
    assert "a process that cannot be seen from here" in str(as_error(parse(outputs).findings))


@pytest.mark.parametrize(
    ("name", "output", "severity", "part"),
    [
        ("gpus", CommandResult(127, b"", b"not found"), "fatal", "No GPU was found (there is no nvidia-smi)"),
        ("gpus", CommandResult(9, b"NVIDIA-SMI has failed because", b""), "fatal", "NVIDIA-SMI has failed"),
        ("shm", disk("/dev/shm", 65536, 65536), "warning", "/dev/shm has 64 MiB"),
        ("disk", disk("/models", 900_000, 102_400), "fatal", "0.1 GiB are free on /models"),
        ("disk", disk("/models", 9_000_000, 4_194_304), "warning", "4.0 GiB are free"),
        ("limits", ok("1024\n64\n"), "warning", "A process may open 1024 files"),
        ("ram", ok("MemTotal: 9999999 kB\nMemAvailable: 1048576 kB\n"), "warning", "1.0 GiB of memory"),
        ("gpu-p2p", ok("\tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n"), "warning", "access (0-1 CNS)"),
        ("xid", ok("NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off\n"), "warning", "79, GPU has"),
        ("model-kind", ok("missing\n"), "fatal", "There is no model at /models/m"),
        ("model-config", CommandResult(1, b"", b""), "fatal", "it has no config.json"),
        ("model-config", ok('{"a": '), "fatal", "not valid JSON"),
        ("model-files", ok(""), "fatal", "2 weight files of /models/m are missing"),
    ],
)  # fmt: skip
def test_one_thing_is_wrong(name: str, output: CommandResult, severity: str, part: str) -> None:
    found = parse({**healthy(), name: output})
    assert [(s, part in w) for s, w in whats(found) if part in w] == [(severity, True)], whats(found)


@pytest.mark.parametrize(
    ("setting", "value", "part"),
    [
        ("HW Thermal Slowdown", "Active", "throttled (HW Thermal Slowdown)"),
        ("Current Power Limit", "450.00 W", "limited to 450 W of 700 W"),
        ("DRAM Uncorrectable", "3", "3 uncorrectable"),
        ("Link Width\n +Max +: 16x\n +Current", "8x", "x8 of x16"),
        ("MIG Mode\n +Current", "Enabled", "MIG mode"),
    ],
)
def test_an_unwell_gpu_is_a_warning(setting: str, value: str, part: str) -> None:
    details, changed = re.subn(rf"({setting} +: )\S.*", rf"\g<1>{value}", nvidia("q"), count=1)
    assert changed
    found = parse({**healthy(), "gpu-details": ok(details)})
    assert [(s, part in w) for s, w in whats(found)] == [("warning", True)], whats(found)
    assert found.host.warnings


def test_a_driver_too_old_for_sm120() -> None:
    outputs = healthy()
    outputs["gpus"] = ok(nvidia("gpus").replace(", 9.0,", ", 12.0,"))
    outputs["gpu-details"] = ok(nvidia("q").replace(": 13.0", ": 12.4"))
    assert "supports CUDA 12.4, NVIDIA H200 needs 12.8" in str(as_error(parse(outputs).findings))


def test_an_engine_that_does_not_answer() -> None:
    outputs = healthy()
    outputs[PARSER] = CommandResult(1, b"", b"python3: No module named sglang")
    outputs[HELP] = CommandResult(1, b"", b"ModuleNotFoundError: No module named 'sglang'")
    found = parse(outputs)
    assert isinstance(as_error(found.findings), EngineError)
    assert "--engine-command" in str(as_error(found.findings))
    assert found.engine.knobs


def test_an_engine_whose_parser_cannot_be_imported_is_a_warning() -> None:
    outputs = healthy()
    outputs[PARSER] = CommandResult(3, b'moeagent-parser:{"version": "0.5.9", "options": null}\n', b"")
    outputs[HELP] = CommandResult(1, b"", b"ImportError: libcuda.so.1")
    assert [s for s, _ in whats(parse(outputs))] == ["warning"]


def test_a_hub_name_is_not_a_missing_model() -> None:
    outputs = {**healthy(), "model-kind": ok("missing\n")}
    assert [s for s, _ in whats(parse(outputs, model="zai-org/GLM-5"))] == ["warning"]


def test_errors_are_classed_by_what_is_wrong_first() -> None:
    outputs = {**healthy(), "model-kind": ok("missing\n")}
    assert isinstance(as_error(parse(outputs).findings), InputError)


def test_a_survey_without_any_output_is_an_error_not_a_crash() -> None:
    found = parse({})
    assert found.host.gpus == ()
    assert isinstance(as_error(found.findings), HostError)


def test_the_model_path_is_an_argument_never_part_of_the_shell_text() -> None:
    evil = "/m'; touch /tmp/x; '"
    for probe in survey_commands(engine_by_name("sglang"), EngineInstall(), evil):
        argv = [str(part) for part in probe.command.argv]
        assert all(evil not in word or word == evil for word in argv)
        assert probe.command.repeatable


@pytest.mark.part("llamacpp")
def test_on_this_machine(tmp_path: Path) -> None:
    engine, install = engine_by_name("llamacpp"), embedded_llamacpp()
    model = str(write_tiny_moe(tmp_path / "it's tiny.gguf"))
    outputs = run_survey(LocalHost(), engine, install, model)
    found = parse_survey(
        outputs, engine=engine, install=install, model=model, host_name="local", simulated=False
    )
    assert [f for f in found.findings if f.area != "host" and f.severity == "fatal"] == []
    assert found.model is not None
    assert found.model.architecture == "qwen3moe"
    assert found.model.config["num_experts"] == 16
    assert found.engine.source == "help"
    assert found.host.cpu_cores
    assert found.host.ram_gib
    assert found.host.disk_free_gib


@pytest.mark.part("llamacpp")
def test_a_truncated_or_foreign_file_is_refused_before_launch(tmp_path: Path) -> None:
    engine, install = engine_by_name("llamacpp"), embedded_llamacpp()
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"not a model")
    found = parse_survey(
        run_survey(LocalHost(), engine, install, str(bad)),
        engine=engine,
        install=install,
        model=str(bad),
        host_name="local",
        simulated=False,
    )
    assert "it is not a GGUF file" in str(as_error(found.findings))


def test_the_quantisation_of_a_modelopt_checkpoint_is_part_of_the_models_facts() -> None:
    """hf_quant_config.json stands beside config.json, which often does not repeat it."""
    quantised = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16}}
    outputs = healthy() | {"model-quantisation": ok(json.dumps(quantised))}
    facts = parse(outputs).model
    assert facts is not None
    assert facts.config["hf_quant_config"] == quantised
    for broken in ("", "{", "[]"):
        facts = parse(healthy() | {"model-quantisation": ok(broken)}).model
        assert facts is not None
        assert "hf_quant_config" not in facts.config
