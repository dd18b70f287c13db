"""Small pieces of text that every output spells the same way."""

from rich.console import Console

from moeagent.memory.records import (
    ConfigChange,
    Effect,
    FlagValue,
    Launch,
    ServerConfig,
    Verdict,
    VerdictKind,
)
from moeagent.tools.stats.assess import WIDE

SIMULATED = "SIMULATED: these figures come from the simulated machine, not from a GPU"
STYLES = {
    VerdictKind.IMPROVED: "bold green",
    VerdictKind.NEUTRAL: "dim",
    VerdictKind.REGRESSED: "red",
    VerdictKind.BLOCKED: "bold red",
    VerdictKind.INVALID: "yellow",
    VerdictKind.NO_OP: "dim",
    VerdictKind.INCONCLUSIVE: "yellow",
}


def console(*, stderr: bool = False) -> Console:
    """A console that never reads markup, emoji or links out of the text that it prints."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)


def flag_text(name: str, value: FlagValue) -> str:
    """One flag as on a command line."""
    return name if value is True else f"{name} {value}"


def change_text(change: ConfigChange) -> str:
    """A change as a diff on one line."""
    parts = [flag_text(k, v) for k, v in sorted(change.set_flags.items())]
    parts += [f"{k}={v}" for k, v in sorted(change.set_env.items())]
    parts += [f"without {k}" for k in (*change.remove_flags, *change.remove_env)]
    parts += [f"install {change.install}"] if change.install else []
    return ", ".join(parts) or "nothing"


def config_text(config: ServerConfig) -> str:
    """A configuration on one line."""
    env = [f"{k}={v}" for k, v in sorted(config.env.items())]
    return " ".join([*env, *(flag_text(k, v) for k, v in sorted(config.flags.items()))]) or "engine defaults"


def percent(value: float) -> str:
    """A relative change; one that no launch could have measured so large is not spelt out."""
    return f"{value:+.1%}" if value < WIDE else f"over +{WIDE:.0%}"


def effect_text(effect: Effect | None) -> str:
    """An effect with its interval, or a dash."""
    if effect is None:
        return "-"
    return f"{percent(effect.effect)} [{percent(effect.low)}, {percent(effect.high)}]"


def verdict_effect_text(verdict: Verdict | None) -> str:
    """The measured effect; a rise that the verdict does not support is not shown as one."""
    if verdict is None or verdict.goal_effect is None:
        return "-"
    if verdict.goal_effect.effect > 0 and verdict.supported_gain is None:
        effect = verdict.goal_effect
        return f"no gain proven [{percent(effect.low)}, {percent(effect.high)}]"
    return effect_text(verdict.goal_effect)


def rate(value: float | None) -> str:
    """Tokens per second, or a dash where nothing was measured."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def seconds(value: float | None) -> str:
    """A duration a person can read."""
    if value is None:
        return "-"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def in_force_text(launch: Launch) -> str:
    """Settings that the engine says differ from what was requested; a dash when none does."""
    found = [
        f"{name} {launch.effective[name]}"
        for name, value in sorted(launch.config.flags.items())
        if name in launch.effective and str(launch.effective[name]) != str(value)
    ]
    return ", ".join(found) or "-"
