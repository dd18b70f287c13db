"""A prediction in a terminal. Text of models and hosts is printed with markup off."""

from rich import box
from rich.console import Console
from rich.table import Table

from moeagent.agent.show.plain import Text
from moeagent.tools.predict.comparison import Candidate, Comparison
from moeagent.tools.predict.records import Estimate, MemoryTable, Prediction

_VERDICTS = {"fits": "fits", "tight": "tight", "does_not_fit": "does not fit"}


def show(answer: Comparison) -> None:
    """Print the whole answer."""
    console = Console(highlight=False)
    _say(console, f"Machine  {answer.machine}")
    _say(console, f"Model    {answer.model}")
    load = answer.workload
    _say(console, f"Flags    of {answer.flags_checked}")
    _say(console, f"Load     {load.input_len} tokens in, {load.output_len} out, closed loop")
    _candidate(console, answer.first)
    if answer.second is not None:
        _candidate(console, answer.second)
        _effects(console, answer)
    for tile in answer.tiles:
        _say(
            console, f"Tile {tile.dtype} {tile.m}x{tile.n}x{tile.k}: {tile.verdict} ({tile.needed_bytes:,} B)"
        )
    for line in answer.triton:
        _say(console, line)


def _candidate(console: Console, candidate: Candidate) -> None:
    config = candidate.config
    words = [f"{k}={v}" for k, v in config.env.items()]
    words += [name if value is True else f"{name} {value}" for name, value in config.flags.items()]
    _say(console, "")
    _say(console, f"{config.engine} {' '.join(words)}")
    prediction = candidate.prediction
    if prediction.memory is not None:
        _memory(console, prediction.memory, on_cpu=config.engine == "llamacpp")
    for refusal in candidate.engine_refuses:
        _say(console, f"Cannot start: {refusal}")
    for remark in candidate.engine_remarks:
        _say(console, f"Remark: {remark}")
    for problem in prediction.problems:
        _say(console, f"Problem: {problem}")
    if prediction.rungs:
        _speed(console, prediction, candidate.looked_up)
    _say(console, f"Risk of death: {candidate.risk:.0%} ({candidate.risk_why})")
    if candidate.not_looked_up:
        _say(console, f"No look-up in measured kernels: {candidate.not_looked_up}")
    for note in prediction.notes:
        _say(console, f"Note: {note}")
    for source in prediction.sources:
        _say(console, f"Source: {source}")


def _memory(console: Console, memory: MemoryTable, *, on_cpu: bool) -> None:
    grid = _grid("Memory, GiB" if on_cpu else "Memory of one GPU, GiB")
    grid.add_column("part")
    grid.add_column("GiB", justify="right")
    grid.add_column("note")
    for line in memory.lines:
        grid.add_row(Text(line.name), f"{line.gib:.2f}", Text(line.note))
    console.print(grid)
    if not on_cpu:
        source = f"fraction {memory.fraction:.4f} ({memory.fraction_source})"
        _say(console, f"Card {memory.total_gib:.2f} GiB, {source}")
    _say(console, f"Verdict: {_VERDICTS[memory.verdict]}. {memory.why}")


def _speed(console: Console, prediction: Prediction, looked_up: Prediction | None) -> None:
    grid = _grid("Speed (expected range)")
    for name in ("clients", "running", "output tok/s", "TTFT s", "TPOT ms"):
        grid.add_column(name, justify="right", no_wrap=True)
    for rung in prediction.rungs:
        cells = (_range(rung.output_tok_s), _range(rung.ttft_ms, 1000), _range(rung.tpot_ms))
        grid.add_row(str(rung.concurrency), str(rung.running), *cells)
    console.print(grid)
    for rung in prediction.rungs:
        _say(console, f"Limit at {rung.concurrency}: {rung.why}")
    if prediction.prefill_tok_s is not None:
        _say(console, f"Prefill of one prompt: {prediction.prefill_tok_s:,.0f} tok/s")
    if looked_up is not None:
        found = ", ".join(f"{r.output_tok_s.value:,.0f} at {r.concurrency}" for r in looked_up.rungs)
        _say(console, f"Output tok/s by look-up in measured kernels instead: {found}")


def _grid(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)


def _range(estimate: Estimate, divisor: int = 1) -> str:
    value, low, high = (x / divisor for x in (estimate.value, estimate.low, estimate.high))
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} ({low:,.{digits}f}-{high:,.{digits}f})"


def _effects(console: Console, answer: Comparison) -> None:
    _say(console, "")
    if not answer.effects:
        _say(console, "The effect of the change cannot be told.")
        return
    grid = _grid("Effect of the change on output tok/s")
    for name in ("clients", "effect", "low", "high"):
        grid.add_column(name, justify="right")
    for effect in answer.effects:
        cells = (f"{effect.effect:+.1%}", f"{effect.low:+.1%}", f"{effect.high:+.1%}")
        grid.add_row(str(effect.concurrency), *cells)
    console.print(grid)


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)
