"""What the survey asks a host: read-only commands, each with a name under which its output is parsed."""

from moeagent.tools.engines.protocol import Engine, EngineInstall, Probe
from moeagent.tools.hosts.protocol import Command

GPU_FIELDS = (
    "index", "uuid", "name", "memory.total", "memory.used", "compute_cap", "power.limit", "driver_version",
)  # fmt: skip
PROCESS_FIELDS = ("gpu_uuid", "pid", "process_name", "used_memory")
GGUF_HEAD_BYTES = 262_144
"""The architecture keys of a GGUF file stand within the first kilobytes."""

_PLACE = '[ -d "$1" ] && d=$1 || d=$(dirname -- "$1"); [ -d "$d" ] || d=/; '
_MODEL_KIND = (
    'if [ -d "$1" ]; then echo directory; elif [ -f "$1" ]; then echo file; wc -c < "$1"; '
    "else echo missing; fi"
)
_MODEL_FILES = (
    "cd -- \"$1\" && find -L . -maxdepth 1 -type f '(' -name '*.safetensors' -o -name '*.bin' "
    "-o -name '*.gguf' -o -name '*.pt' ')' -exec ls -lnL {} +"
)
_INDEX = 'cat -- "$1"/model.safetensors.index.json | grep -o \'"[^"]*[.]safetensors"\' | sort -u'
_USERS = (
    "nvidia-smi --query-compute-apps=pid --format=csv,noheader | sort -u | "
    'while read -r p; do ps -o pid=,user= -p "$p"; done'
)
_GPU_BUS = (
    "for d in /sys/bus/pci/devices/*; do "
    'case $(cat "$d/vendor") in 0x10de|0x1002) ;; *) continue ;; esac; '
    'case $(cat "$d/class") in 0x0300*|0x0302*|0x1200*) ;; *) continue ;; esac; '
    'p=$(readlink -f "$d/.."); '
    'for f in "$d/numa_node" "$d/max_link_speed" "$d/max_link_width" "$p/max_link_speed" "$p/max_link_width" '
    '"$d/iommu_group/type"; do printf "%s|" "$(cat "$f" 2>/dev/null)"; done; echo "${d##*/}"; done'
)
"""A line for each GPU: NUMA node, its fastest link, its slot's fastest link, IOMMU domain type, address."""
_ACS = "lspci -vv 2>/dev/null | grep 'ACSCtl:'"
"""The access control of each PCIe bridge; lspci shows it to root only."""


def survey_commands(engine: Engine, install: EngineInstall, model: str | None) -> tuple[Probe, ...]:
    """Everything that is asked, in order: the machine, the model, the engine."""
    about_model = model_commands(model) if model else ()
    return (*machine_commands(model or "/"), *about_model, *engine.probes(install))


def machine_commands(place: str) -> tuple[Probe, ...]:
    """GPUs, processor, memory, disk at `place`, limits."""
    gpu_query = f"--query-gpu={','.join(GPU_FIELDS)}"
    process_query = f"--query-compute-apps={','.join(PROCESS_FIELDS)}"
    return (
        _probe("gpus", "nvidia-smi", gpu_query, "--format=csv,noheader,nounits"),
        _probe("gpu-details", "nvidia-smi", "-q"),
        _probe("gpu-topology", "nvidia-smi", "topo", "-m"),
        _probe("gpu-p2p", "nvidia-smi", "topo", "-p2p", "r"),
        _probe("gpu-processes", "nvidia-smi", process_query, "--format=csv,noheader,nounits"),
        _script("gpu-process-users", _USERS),
        _probe("cpu-cores", "nproc"),
        _probe("ram", "cat", "/proc/meminfo"),
        _script("disk", _PLACE + 'df -Pk -- "$d"', place),
        _probe("shm", "df", "-Pk", "/dev/shm"),  # noqa: S108 - its size is asked, nothing is written
        _script("limits", "ulimit -n; ulimit -l"),
        _script("machine-id", "cat /etc/machine-id 2>/dev/null; uname -n"),
        _probe("kernel", "uname", "-srm"),
        _script("numa", "cat /sys/devices/system/node/online"),
        _script("iommu", "ls /sys/kernel/iommu_groups | wc -l"),
        _script("gpu-bus", _GPU_BUS),
        _script("acs", _ACS),
        _script("xid", "dmesg 2>/dev/null | grep 'NVRM: Xid' | tail -n 5"),
    )


def model_commands(model: str) -> tuple[Probe, ...]:
    """What is at the model's path: configuration, files, the head of a GGUF file."""
    return (
        _script("model-kind", _MODEL_KIND, model),
        _script("model-config", 'cat -- "$1"/config.json', model),
        _script("model-quantisation", 'cat -- "$1"/hf_quant_config.json', model),
        _script("model-files", _MODEL_FILES, model),
        _script("model-index", _INDEX, model),
        _script("model-head", f'[ -f "$1" ] && head -c {GGUF_HEAD_BYTES} -- "$1"', model),
    )


def _probe(name: str, *argv: str) -> Probe:
    return Probe(name, Command(argv, {"LC_ALL": "C"}, repeatable=True))


def _script(name: str, text: str, *arguments: str) -> Probe:
    """A fixed shell text; what comes from outside is a positional argument, never part of the text."""
    return Probe(name, Command(("sh", "-c", text, "sh", *arguments), {"LC_ALL": "C"}, repeatable=True))
