"""What a loop has spent by its own account: time, GPUs, money."""

from moeagent.agent.approval.expected import expected_launch
from moeagent.agent.limits import Spending, experiments_exhausted, launches_exhausted
from moeagent.agent.loop import Loop
from moeagent.memory.errors import InputError


def spending(loop: Loop) -> Spending:
    """At the loop's last look at the clock."""
    return Spending(
        active_s=loop.world.active_s,
        gpus=len(loop.surveyed.host.gpus),
        price_per_hour=loop.settings.host.price_per_hour,
        model_money=loop.chat.spent.money if loop.chat else 0.0,
        next_s=expected_launch(loop, loop.incumbent).sure_s,
    )


def no_more_launches(loop: Loop) -> str:
    """Why no further launch may be made; empty while one may."""
    return launches_exhausted(loop.settings.limits, loop.ledger, spending(loop))


def no_more_experiments(loop: Loop) -> str:
    """Why no further hypothesis may be tried; empty while one may."""
    return experiments_exhausted(loop.settings.limits, loop.ledger, spending(loop))


def check_limits(loop: Loop) -> None:
    """Raises InputError for a limit that would never bind on this machine."""
    limits = loop.settings.limits
    if limits.gpu_hours is not None and not loop.surveyed.host.gpus:
        raise InputError(
            f"limits.gpu_hours: {loop.settings.host.target} has no GPU, so the limit would never hold: set "
            "limits.hours instead"
        )
