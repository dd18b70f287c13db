"""How fast a night's work is read: the log, the report, the findings store."""

import itertools
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from e2e.command import environment
from parts.made_run import write_run

from moeagent.agent.show.html.page import page
from moeagent.memory.findings.documented import QUESTIONS
from moeagent.memory.findings.query import Filters, find
from moeagent.memory.findings.schema import write_transaction
from moeagent.memory.findings.store import FindingsStore
from moeagent.memory.run_view import RunView

WORDS = [
    "expert",
    "parallelism",
    "chunked",
    "prefill",
    "graphs",
    "memory",
    "attention",
    "kernels",
    "batch",
    "overlap",
]
PARSE = (
    "import json, pathlib, sys\n"
    "for line in pathlib.Path(sys.argv[1]).read_bytes().splitlines(): json.loads(line[17:])"
)
KINDS = ("improved", "neutral", "regressed", "blocked", "inconclusive")
ASKED = (
    {"text": "expert parallelism", "gpu": "H200"},
    {"flag": "flag-7", "verdict": "blocked"},
    {"text": "chunked blocked"},
    {},
)


@pytest.fixture
def timed(full: bool) -> Callable[[str, float, Callable[[], object]], None]:
    """Prints the best of three; with --full it must be below the limit."""

    def run(what: str, limit_s: float, work: Callable[[], object]) -> None:
        took = min(clock(work) for _ in range(3))
        print(f"{what}: {took * 1000:.0f} ms (asked: below {limit_s * 1000:.0f} ms)")
        assert not full or took < limit_s

    return run


def clock(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def test_log_of_a_thousand_experiments(tmp_path: Path, full: bool) -> None:
    """By the processes' own CPU time: other work on the machine does not count."""
    count = 1000 if full else 20
    folder = write_run(tmp_path / "runs", hypotheses=count)
    parsing = (sys.executable, "-c", PARSE, str(folder.tape))
    asked = (sys.executable, "-m", "moeagent.agent", "log", "made")
    log, parse = (cpu_of(command, tmp_path) for command in (asked, parsing))
    size = folder.tape.stat().st_size / 1e6
    print(f"log of {count} experiments ({size:.1f} MB): {log * 1000:.0f} ms (asked: below 500 ms), ", end="")
    print(f"{log / parse:.1f} times a Python process that parses the tape's JSON ({parse * 1000:.0f} ms)")
    assert not full or log < 0.5


def cpu_of(command: Sequence[str], folder: Path) -> float:
    """CPU seconds of a process, the least of five."""
    return min(_cpu(command, folder) for _ in range(5))


def _cpu(command: Sequence[str], folder: Path) -> float:
    def used() -> float:
        times = resource.getrusage(resource.RUSAGE_CHILDREN)
        return times.ru_utime + times.ru_stime

    before = used()
    subprocess.run(command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL, check=True)
    return used() - before


def test_report_of_two_hundred_experiments(
    tmp_path: Path, full: bool, timed: Callable[[str, float, Callable[[], object]], None]
) -> None:
    count = 200 if full else 10
    folder = write_run(tmp_path, hypotheses=count)
    size = len(page(folder, RunView.read(folder)).encode())
    print(f"report of {count} experiments: {size / 1e6:.2f} MB (asked: below 5 MB)")
    assert size < 5_000_000
    timed("drawing it", 10.0, lambda: page(folder, RunView.read(folder)))


def test_questions_to_a_store_of_a_million_measurements(
    tmp_path: Path, full: bool, timed: Callable[[str, float, Callable[[], object]], None]
) -> None:
    runs = 1000 if full else 20
    store = FindingsStore(tmp_path / "findings.db")
    fill(store, runs)
    for question in ASKED:
        filters = Filters.model_validate(question)
        timed(f"{question} over {runs * 1000} measurements", 0.1, lambda f=filters: find(store, f))
    for question, sql in QUESTIONS.items():
        timed(f"{question} over {runs * 1000} measurements", 0.1, lambda q=sql: store.query(q, {}))
    store.close()


def fill(store: FindingsStore, runs: int) -> None:
    """50 hypotheses, 200 launches, 20 of which fail, and 1,000 measurements a run."""
    database = store._db
    with write_transaction(database):
        for table, rows in ROWS.items():
            for number in range(runs):
                database.table(table).insert_all(rows(number), batch_size=1000)


def run_rows(number: int) -> Iterator[dict[str, object]]:
    gpu = ("RTX PRO 6000", "H200")[number % 2]
    yield {
        "id": f"run{number:04}",
        "created_at": f"2026-{number:04}",
        "goal": "max-throughput",
        "workload": "w",
        "gpu": gpu,
        "gpu_count": 8,
        "engine": "sglang",
        "model": "GLM-5",
        "simulated": 0,
        "status": "finished",
    }


def hypothesis_rows(number: int) -> Iterator[dict[str, object]]:
    pairs = list(itertools.permutations(WORDS, 2))
    for i in range(50):
        first, second = pairs[(number * 50 + i) % len(pairs)]
        yield {
            "run": f"run{number:04}",
            "id": f"H{i}",
            "statement": f"{first} {second}",
            "reason": "because",
            "knobs": f"--flag-{i}",
            "change": "{}",
            "verdict": KINDS[(i + number) % 5],
            "verdict_reason": "so",
            "effect": 0.1,
            "low": 0.0,
            "high": 0.2,
        }


def rung_rows(number: int) -> Iterator[dict[str, object]]:
    for launch, concurrency in itertools.product(range(200), (1, 10, 64, 256, 1024)):
        yield {
            "run": f"run{number:04}",
            "launch": f"L{launch}",
            "concurrency": concurrency,
            "completed": 1,
            "failed": 0,
            "output_tok_s": 100.0 + (number * 7919 + launch * 104729) % 9973,
            "invalid": "",
        }


def launch_rows(number: int) -> Iterator[dict[str, object]]:
    for launch in range(200):
        yield {
            "run": f"run{number:04}",
            "id": f"L{launch}",
            "hypothesis": f"H{launch // 4}",
            "config": "{}",
            "outcome": "completed",
        }


def diagnosis_rows(number: int) -> Iterator[dict[str, object]]:
    for launch in range(0, 200, 10):
        yield {
            "run": f"run{number:04}",
            "launch": f"L{launch}",
            "class": f"class-{(number + launch) % 30}",
            "confidence": 0.9,
            "stage": "load",
            "explanation": "so",
        }


def review_rows(number: int) -> Iterator[dict[str, object]]:
    yield {
        "run": f"run{number:04}",
        "about": "H3",
        "judgement": "rejected",
        "reason": "no",
        "at": f"{number}",
    }


ROWS = {
    "runs": run_rows,
    "hypotheses": hypothesis_rows,
    "launches": launch_rows,
    "measurements": rung_rows,
    "diagnoses": diagnosis_rows,
    "reviews": review_rows,
}
