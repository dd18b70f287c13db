"""The true figures of a run, from the truth server's own times."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.loadgen.truth import Sent

from moeagent.tools.load.figures import percentile


class Figures(NamedTuple):
    """The four figures that clients are compared by; milliseconds."""

    tok_s: float
    ttft_p50: float
    ttft_p99: float
    itl_p99: float


def true_figures(sent: Sequence[Sent]) -> Figures:
    """Of the complete requests, as the server sent them."""
    complete = [s for s in sent if s.complete]
    first = min(s.first_byte_ns for s in sent)
    last = max(s.token_ns[-1] for s in sent if s.token_ns)
    ttft = sorted((s.token_ns[0] - s.first_byte_ns) / 1e6 for s in complete)
    itl = sorted((b - a) / 1e6 for s in complete for a, b in pairwise(s.token_ns))
    tokens = sum(len(s.token_ns) for s in complete)
    return Figures(
        tokens * 1e9 / (last - first), percentile(ttft, 0.5), percentile(ttft, 0.99), percentile(itl, 0.99)
    )
