"""The survey as a whole: from the outputs of all commands to the facts and the findings."""

from collections.abc import Iterator, Mapping

from moeagent.memory.records import EngineFacts, Gpu, HostFacts, ModelFacts, Record
from moeagent.tools.engines.probe_cache import ProbeCache
from moeagent.tools.engines.probing import HELP, PARSER, answered, run_probes, text_of
from moeagent.tools.engines.protocol import Engine, EngineInstall
from moeagent.tools.hosts.protocol import CommandResult, Host
from moeagent.tools.survey import bus, nvidia, system
from moeagent.tools.survey import findings as judge
from moeagent.tools.survey.commands import survey_commands
from moeagent.tools.survey.findings import Finding
from moeagent.tools.survey.model import ModelPlace, parse_model

Outputs = Mapping[str, CommandResult]
_REAL_BUS = ("gpu-bus", "acs", "iommu")
"""What a simulated machine cannot answer for itself: the answers are those of the machine below it."""
_ENGINE_PROBES = ("engine-parser", "engine-help", "engine-version")


class Survey(Record):
    """Everything that the survey found."""

    host: HostFacts
    engine: EngineFacts
    model: ModelFacts | None
    processes: tuple[nvidia.GpuProcess, ...] = ()
    health: tuple[nvidia.GpuHealth, ...] = ()
    findings: tuple[Finding, ...] = ()


def run_survey(
    host: Host, engine: Engine, install: EngineInstall, model: str | None, *, cache: ProbeCache | None = None
) -> dict[str, CommandResult]:
    """Runs every command of the survey. Raises RemoteError when the connection breaks.

    `cache` spares the import of an engine whose version was read before on this host.
    """
    return run_probes(host, survey_commands(engine, install, model), cache=cache)


def parse_survey(
    outputs: Outputs,
    *,
    engine: Engine,
    install: EngineInstall,
    model: str | None,
    host_name: str,
    simulated: bool,
) -> Survey:
    """Pure: facts and findings from recorded outputs, fatal findings first."""
    if simulated:
        outputs = {name: output for name, output in outputs.items() if name not in _REAL_BUS}
    gpus, by_uuid, driver = nvidia.parse_gpus(_out(outputs, "gpus"))
    details = _out(outputs, "gpu-details")
    users = _out(outputs, "gpu-process-users")
    processes = nvidia.parse_processes(_out(outputs, "gpu-processes"), users, by_uuid)
    engine_facts = engine.facts(outputs, install)
    place = _model(outputs, model)
    found = list(_findings(outputs, gpus, processes, engine_facts, place))
    order = {"fatal": 0, "warning": 1, "info": 2}
    found.sort(key=lambda finding: order[finding.severity])
    return Survey(
        host=_host_facts(outputs, gpus, tuple(by_uuid), driver, found, host_name, simulated),
        engine=engine_facts,
        model=place.facts if place is not None else None,
        processes=processes,
        health=nvidia.parse_health(details),
        findings=tuple(found),
    )


def _findings(
    outputs: Outputs,
    gpus: tuple[Gpu, ...],
    processes: tuple[nvidia.GpuProcess, ...],
    engine: EngineFacts,
    place: ModelPlace | None,
) -> Iterator[Finding]:
    memory = system.parse_meminfo(_out(outputs, "ram"))
    cpu_build = "cpu" in (engine.version or "").partition("+")[2]
    needs_gpu = engine.engine in ("sglang", "vllm") and not cpu_build
    smi = outputs.get("gpus")
    refused = _refusal(smi)
    yield from judge.gpu_findings(
        gpus, processes, engine=engine.engine, needs_gpu=needs_gpu, smi_error=refused
    )
    details = _out(outputs, "gpu-details")
    yield from judge.cuda_findings(gpus, nvidia.parse_cuda_version(details))
    yield from judge.health_findings(nvidia.parse_health(details), _out(outputs, "xid"))
    links = nvidia.parse_links(_out(outputs, "gpu-topology"))
    yield from judge.link_findings(
        nvidia.parse_p2p(_out(outputs, "gpu-p2p")) if len(gpus) > 1 else (),
        links,
        system.parse_count(_out(outputs, "iommu")),
    )
    yield from bus.bus_findings(
        bus.parse_pci_gpus(_out(outputs, "gpu-bus")),
        acs_bridges=bus.parse_acs(_out(outputs, "acs")),
        nvlink="NV" in links,
        numa_nodes=system.parse_numa_nodes(_out(outputs, "numa")),
        engine=engine.engine,
    )
    disk, shm = system.parse_df(_out(outputs, "disk")), system.parse_df(_out(outputs, "shm"))
    limits = system.parse_limits(_out(outputs, "limits"))
    yield from judge.machine_findings(memory, disk, shm, limits, gpus=len(gpus))
    yield from judge.model_findings(place, engine.engine, memory, gpus=len(gpus))
    asked = {name: outputs[name] for name in _ENGINE_PROBES if name in outputs}
    last = asked.get(HELP) or asked.get(PARSER)
    yield from judge.engine_findings(
        engine.engine,
        installed=answered(asked),
        version=engine.version,
        source=engine.source,
        said=_said(last),
    )


def _host_facts(
    outputs: Outputs,
    gpus: tuple[Gpu, ...],
    uuids: tuple[str, ...],
    driver: str | None,
    found: list[Finding],
    host_name: str,
    simulated: bool,
) -> HostFacts:
    memory = system.parse_meminfo(_out(outputs, "ram"))
    disk, shm = system.parse_df(_out(outputs, "disk")), system.parse_df(_out(outputs, "shm"))
    return HostFacts(
        name=host_name,
        machine_id=system.machine_hash(_out(outputs, "machine-id"), uuids),
        gpus=gpus,
        driver=driver,
        cuda=nvidia.parse_cuda_version(_out(outputs, "gpu-details")),
        cpu_cores=system.parse_count(_out(outputs, "cpu-cores")),
        ram_gib=memory.total_gib if memory is not None else None,
        disk_free_gib=disk.free_gib if disk is not None else None,
        shm_gib=shm.total_gib if shm is not None else None,
        topology=nvidia.plain(_out(outputs, "gpu-topology")).strip() or None,
        warnings=tuple(finding.line() for finding in found if finding.severity == "warning"),
        simulated=simulated,
    )


def _model(outputs: Outputs, model: str | None) -> ModelPlace | None:
    if model is None:
        return None
    head = outputs.get("model-head")
    return parse_model(
        model,
        _out(outputs, "model-kind"),
        _out(outputs, "model-config"),
        _out(outputs, "model-files"),
        _out(outputs, "model-index"),
        head.stdout if head is not None else b"",
        _out(outputs, "model-quantisation"),
    )


def _out(outputs: Outputs, name: str) -> str:
    """Standard output of a command that went well; nothing for one that failed or was not run."""
    result = outputs.get(name)
    return result.text if result is not None and result.exit_code == 0 else ""


def _refusal(smi: CommandResult | None) -> str:
    if smi is None or smi.exit_code == 0:
        return "nvidia-smi lists none"
    return "there is no nvidia-smi" if smi.exit_code == 127 else _said(smi)


def _said(result: CommandResult | None) -> str:
    """The last line that a command printed, whatever came of it."""
    lines = [line.strip() for line in text_of(result).splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"
