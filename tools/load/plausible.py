"""Figures that cannot be true, whatever the server says."""

from collections.abc import Sequence
from typing import Any

from moeagent.memory.records import Rung

ROOFLINE_TOLERANCE = 1.02
"""Clock resolution and the rounding of the roofline itself."""


def implausible(rung: Rung, answers: Sequence[dict[str, Any]], plan: dict[str, Any]) -> list[str]:
    """Each reason why the rung's figures may not be used; empty when they are plausible."""
    checks = (
        above_roofline(rung, plan),
        below_network(rung, plan),
        without_text(answers),
        above_asked(answers),
    )
    return [reason for reason in checks if reason]


def above_roofline(rung: Rung, plan: dict[str, Any]) -> str:
    """Throughput that no machine of this kind can reach."""
    limit = plan.get("roofline_tok_s")
    if limit is None or rung.output_tok_s is None or rung.output_tok_s <= limit * ROOFLINE_TOLERANCE:
        return ""
    return f"{rung.output_tok_s:.0f} tok/s is above the machine's roofline of {limit:.0f}"


def below_network(rung: Rung, plan: dict[str, Any]) -> str:
    """First tokens that came before the network could carry them."""
    rtt = plan.get("network_rtt_ms")
    if rtt is None or rung.ttft_ms is None or rung.ttft_ms.p50 >= rtt:
        return ""
    return f"TTFT p50 of {rung.ttft_ms.p50:.3f} ms is below the network's round trip of {rtt:.3f} ms"


def without_text(answers: Sequence[dict[str, Any]]) -> str:
    """Tokens counted by the server that carried no text."""
    hollow = sum(1 for a in answers if a["kind"] == "empty" or ((a["out"] or 0) > 8 and len(a["gaps"]) == 0))
    return f"{hollow} of {len(answers)} answers are empty" if hollow else ""


def above_asked(answers: Sequence[dict[str, Any]]) -> str:
    """More tokens than the request allowed."""
    over = sum(1 for a in answers if a["out"] is not None and a["out"] > a["asked"])
    return f"{over} of {len(answers)} answers have more tokens than asked for" if over else ""
