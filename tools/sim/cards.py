"""The GPUs of the simulated box right now, field by field as nvidia-smi names them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from moeagent.tools.sim.machines import CAMPAIGNS
from moeagent.tools.sim.shapes import MachineShape, load_machines
from moeagent.tools.sim.state import ServerEntry, SimConfig

DRIVER = "580.95.05-simulated"
RESERVED_MIB = 4


@dataclass(frozen=True)
class Card:
    """One GPU right now."""

    index: int
    machine: MachineShape
    used_mib: int

    @property
    def busy(self) -> bool:
        """True while a server holds memory."""
        return self.used_mib > RESERVED_MIB

    def fields(self) -> dict[str, tuple[str, str]]:
        """Value and unit of every field that --query-gpu knows."""
        machine, power = self.machine, self.machine.power_w
        bus = f"00000000:{0x01 + 0x20 * self.index:02X}:00.0"
        return {
            "index": (str(self.index), ""), "name": (machine.gpu, ""), "gpu_name": (machine.gpu, ""),
            "uuid": (f"GPU-51a1a7ed-0000-0000-0000-{self.index:012d}", ""), "count": (str(machine.count), ""),
            "serial": ("[N/A]", ""), "pci.bus_id": (bus, ""), "driver_version": (DRIVER, ""),
            "memory.total": (str(machine.memory_mib), "MiB"), "memory.used": (str(self.used_mib), "MiB"),
            "memory.free": (str(machine.memory_mib - self.used_mib), "MiB"), "memory.reserved": ("638",
            "MiB"),
            "compute_cap": (machine.capability, ""), "power.limit": (f"{power:.2f}", "W"),
            "power.default_limit": (f"{power:.2f}", "W"), "power.max_limit": (f"{power:.2f}", "W"),
            "power.min_limit": ("150.00", "W"), "enforced.power.limit": (f"{power:.2f}", "W"),
            "power.draw": (f"{power * (0.55 if self.busy else 0.06):.2f}", "W"),
            "power.draw.instant": (f"{power * (0.55 if self.busy else 0.06):.2f}", "W"),
            "utilization.gpu": ("87" if self.busy else "0", "%"),
            "utilization.memory": ("41" if self.busy else "0", "%"),
            "temperature.gpu": ("58" if self.busy else "31", ""), "pstate": ("P1" if self.busy else "P8", ""),
            "clocks.sm": ("2430" if self.busy else "180", "MHz"),
            "clocks.gr": ("2430" if self.busy else "180", "MHz"),
            "clocks.mem": ("12481", "MHz"), "clocks.max.sm": ("2430", "MHz"), "clocks.max.gr": ("2430",
            "MHz"),
            "clocks_event_reasons.active": ("0x0000000000000000", ""), "persistence_mode": ("Enabled", ""),
            "clocks_throttle_reasons.active": ("0x0000000000000000", ""), "ecc.mode.current": ("Disabled",
            ""),
            "mig.mode.current": ("Disabled", "") if machine.capability == "9.0" else ("[N/A]", ""),
            "compute_mode": ("Default", ""), "fan.speed": ("30", "%"),
            "pcie.link.gen.current": ("5", ""), "pcie.link.gen.max": ("5", ""),
            "pcie.link.width.current": ("16", ""),
            "pcie.link.width.max": ("16", ""), "vbios_version": ("98.02.55.00.04", ""),
            "timestamp": (datetime.now().astimezone().strftime("%Y/%m/%d %H:%M:%S.%f")[:-3], ""),
        }  # fmt: skip


def cards(config: SimConfig, servers: Sequence[ServerEntry]) -> tuple[Card, ...]:
    """The GPUs of the box with what is held on them."""
    machine = load_machines()[CAMPAIGNS[config.campaign].machine_name]
    made = []
    for index in range(machine.count):
        held = config.held_gib + sum(server.used_gib for server in servers if index in server.gpus)
        made.append(Card(index, machine, min(RESERVED_MIB + round(held * 1024), machine.memory_mib)))
    return tuple(made)
