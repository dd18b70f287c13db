"""`nvidia-smi` of the simulated box: what a survey asks, with the memory that running servers hold."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from moeagent.tools.sim.cards import DRIVER, Card, cards
from moeagent.tools.sim.state import ServerEntry, SimConfig, load_config, running_servers, state_dir

CUDA = "13.0"
VERSION_TEXT = (
    f"NVIDIA-SMI version  : {DRIVER}\nNVML version        : 580.95\n"
    f"DRIVER version      : {DRIVER}\nCUDA Version        : {CUDA}\n"
)
STRANGER_PID = 1


def _csv(names: list[str], rows: list[list[tuple[str, str]]], options: str) -> str:
    plain = "nounits" in options
    lines = [
        ", ".join(value if plain or not unit else f"{value} {unit}" for value, unit in row) for row in rows
    ]
    if "noheader" not in options:
        units = [unit for _, unit in rows[0]] if rows else [""] * len(names)
        heads = (f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True))
        lines.insert(0, ", ".join(heads))
    return "".join(line + "\n" for line in lines)


def query_gpu(fields: str, options: str, gpus: Sequence[Card]) -> str:
    """--query-gpu. Raises KeyError for a field that it does not know."""
    names = [name.strip() for name in fields.split(",")]
    return _csv(names, [[card.fields()[name] for name in names] for card in gpus], options)


def query_apps(
    fields: str, options: str, config: SimConfig, servers: Sequence[ServerEntry], gpus: Sequence[Card]
) -> str:
    """--query-compute-apps. Raises KeyError for a field that it does not know."""
    names = [name.strip() for name in fields.split(",")]
    rows = []
    for card in gpus:
        holders = [
            (server.pid, "sglang::scheduler", server.used_gib)
            for server in servers
            if card.index in server.gpus
        ]
        if config.held_gib:
            holders.append((STRANGER_PID, "python3", config.held_gib))
        for pid, name, used in holders:
            known = {
                "pid": (str(pid), ""), "process_name": (name, ""), "name": (name, ""),
                "used_memory": (str(round(used * 1024)), "MiB"), "used_gpu_memory": (str(round(used * 1024)),
                "MiB"),
                "gpu_uuid": card.fields()["uuid"], "gpu_name": (card.machine.gpu, ""),
                "gpu_bus_id": card.fields()["pci.bus_id"],
            }  # fmt: skip
            rows.append([known[field] for field in names])
    return _csv(names, rows, options)


def topology(gpus: Sequence[Card]) -> str:
    """`topo -m`: one half of the cards on each socket."""
    count = len(gpus)
    half, cores = max(count // 2, 1), gpus[0].machine.cpu_cores // 2
    lines = ["\t" + "\t".join(f"GPU{i}" for i in range(count)) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"]
    for one in range(count):
        near = [
            "X" if one == other else "NODE" if one // half == other // half else "SYS"
            for other in range(count)
        ]
        node = one // half
        cells = [
            f"GPU{one}",
            *(f" {cell} " for cell in near),
            f"{node * cores}-{node * cores + cores - 1}",
            str(node),
            "N/A",
        ]
        lines.append("\t".join(cells))
    legend = (
        "", "Legend:", "", "  X    = Self",
        "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., "
        "QPI/UPI)",
        "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within "
        "a NUMA node",
    )  # fmt: skip
    return "\n".join([*lines, *legend]) + "\n"


def peer_access(gpus: Sequence[Card]) -> str:
    """`topo -p2p`: every pair reads from each other."""
    names = [f"GPU{card.index}" for card in gpus]
    rows = ["\t".join([one, *("X" if one == other else "OK" for other in names)]) for one in names]
    legend = ("", "Legend:", "", "  X    = Self", "  OK   = Status Ok")
    return "\n".join(["\t" + "\t".join(names), *rows, *legend]) + "\n"


def overview(gpus: Sequence[Card], servers: Sequence[ServerEntry]) -> str:
    """The table that nvidia-smi prints without arguments."""
    rule = "+" + "-" * 89 + "+"
    lines = [datetime.now().astimezone().strftime("%a %b %d %H:%M:%S %Y"), rule]
    lines.append(f"| NVIDIA-SMI {DRIVER:<22} Driver Version: {DRIVER:<22} CUDA Version: {CUDA:<5} |")
    lines.append(rule)
    for card in gpus:
        fields = card.fields()
        lines.append(
            f"| {card.index:>3}  {card.machine.gpu[:48]:<48} {fields['pci.bus_id'][0]}             |\n"
            f"| {fields['temperature.gpu'][0]:>4}C    {fields['pstate'][0]}   "
            f"{float(fields['power.draw'][0]):>4.0f}W / {card.machine.power_w:>4}W  "
            f"|  {card.used_mib:>6}MiB / {card.machine.memory_mib:>6}MiB | "
            f"{fields['utilization.gpu'][0]:>4}%      Default   |"
        )
        lines.append(rule)
    lines += ["| Processes:" + " " * 78 + "|"]
    for server in servers:
        lines += [
            f"|  {gpu:>3}   {server.pid:>8}   C   sglang::scheduler {server.used_gib * 1024:>8.0f}MiB |"
            for gpu in server.gpus
        ]
    lines.append(rule)
    return "\n".join(lines) + "\n"


def details(gpus: Sequence[Card]) -> str:
    """`-q`: one block for each GPU."""
    out = [
        "",
        "==============NVSMI LOG==============",
        "",
        f"{'Driver Version':<42}: {DRIVER}",
        f"{'CUDA Version':<42}: {CUDA}",
        "",
        f"{'Attached GPUs':<42}: {len(gpus)}",
    ]
    for card in gpus:
        fields = card.fields()
        rows = (
            (4, "Product Name", card.machine.gpu),
            (4, "GPU UUID", fields["uuid"][0]),
            (8, "FB Total", f"{card.machine.memory_mib} MiB"),
            (8, "FB Used", f"{card.used_mib} MiB"),
            (8, "FB Free", f"{card.machine.memory_mib - card.used_mib} MiB"),
            (8, "SW Power Cap", "Not Active"),
            (8, "Current Power Limit", f"{card.machine.power_w:.2f} W"),
        )
        out.append(f"GPU {fields['pci.bus_id'][0]}")
        out += [f"{' ' * indent}{name:<{42 - indent}}: {value}" for indent, name, value in rows]
    return "\n".join(out) + "\n"


def _option(arguments: Sequence[str], name: str) -> str | None:
    for index, argument in enumerate(arguments):
        if argument.startswith(name + "="):
            return argument.partition("=")[2]
        if argument == name and index + 1 < len(arguments):
            return arguments[index + 1]
    return None


def _selected(gpus: tuple[Card, ...], wanted: str | None) -> tuple[Card, ...]:
    if not wanted:
        return gpus
    ids = {part.strip() for part in wanted.split(",")}
    return tuple(card for card in gpus if str(card.index) in ids or card.fields()["uuid"][0] in ids)


def _period_s(arguments: Sequence[str]) -> float | None:
    """The time between two answers of a call that goes on answering; None for a single answer."""
    seconds = _option(arguments, "--loop") or _option(arguments, "-l")
    millis = _option(arguments, "--loop-ms") or _option(arguments, "-lms")
    if millis is not None:
        return float(millis) / 1000
    return float(seconds) if seconds is not None else None


def main(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """Answer one call, again and again where it asks for that; returns the exit status."""
    period_s = _period_s(arguments)
    try:
        while (status := _answer(arguments, env)) == 0 and period_s is not None:
            sys.stdout.flush()
            time.sleep(period_s)
    except BrokenPipeError:
        # Python would report the lines that it still holds.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _answer(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    config = load_config(env)
    servers = running_servers(state_dir(env))
    gpus = _selected(cards(config, servers), _option(arguments, "--id") or _option(arguments, "-i"))
    options = _option(arguments, "--format") or ""
    fields, apps = _option(arguments, "--query-gpu"), _option(arguments, "--query-compute-apps")
    try:
        if "--version" in arguments:
            text = VERSION_TEXT
        elif fields:
            text = query_gpu(fields, options, gpus)
        elif apps:
            text = query_apps(apps, options, config, servers, gpus)
        elif "topo" in arguments:
            text = peer_access(gpus) if "-p2p" in arguments else topology(gpus)
        elif "-q" in arguments or "--query" in arguments:
            text = details(gpus)
        elif "-L" in arguments or "--list-gpus" in arguments:
            text = "".join(
                f"GPU {card.index}: {card.machine.gpu} (UUID: {card.fields()['uuid'][0]})\n" for card in gpus
            )
        else:
            text = overview(gpus, servers)
    except KeyError as error:
        sys.stdout.write(f"Field {error} is not a valid field to query.\n\n")
        return 2
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))
