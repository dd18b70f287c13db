"""Scanning side by side with `grep -E` over the same patterns, and how much memory a huge log takes.

`pytest -s tests/bench/diagnosis` gates a 192 MB log and prints the figures; SCAN_MB=1024 is the full size.
Peak memory is VmHWM: ru_maxrss would count the parent that started the probe.
CPU seconds are compared, not wall seconds: other work on the machine must not decide.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench.diagnosis.synthetic import write_log

from moeagent.tools.diagnosis import load_catalogue
from moeagent.tools.diagnosis.ere import to_ere
from moeagent.tools.diagnosis.remote import read_on_host
from moeagent.tools.diagnosis.scanner import search_patterns
from moeagent.tools.hosts.local import LocalHost

MEGABYTES = int(os.environ.get("SCAN_MB", "192"))
RATIO = 2.0
"""At most this many times grep's CPU seconds."""
MEMORY_MB = 200
PROBE = """
import json, re, sys, time
from pathlib import Path
from moeagent.tools.diagnosis import diagnose_log, load_catalogue
from moeagent.tools.diagnosis.reading import read_log
catalogue = load_catalogue()
began = time.process_time()
log = read_log(Path(sys.argv[1]), catalogue)
scanned = time.process_time()
answer = diagnose_log(log, catalogue=catalogue)
status = Path("/proc/self/status").read_text()
print(json.dumps({"scan_s": scanned - began, "judge_s": time.process_time() - scanned,
                  "line_no": answer.line_no, "class": answer.failure_class,
                  "peak_mb": int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024}))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("scan") / "server.log"
    return path, write_log(path, MEGABYTES << 20)


def grep_cpu_s(path: Path) -> float:
    patterns = "\n".join(to_ere(pattern) for pattern in search_patterns(load_catalogue()))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        ["grep", "-aEc", "-f", "-", str(path)],
        input=patterns.encode(),
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_scan_keeps_up_with_grep_in_bounded_memory(large):
    path, number = large
    probe = [sys.executable, "-c", PROBE, str(path)]
    done = subprocess.run(probe, capture_output=True, check=True, text=True)
    ours = json.loads(done.stdout)
    grep = min(grep_cpu_s(path) for _ in range(2))
    print(
        f"\n{MEGABYTES} MB: scan {ours['scan_s']:.2f} s CPU ({MEGABYTES / ours['scan_s']:.0f} MB/s), "
        f"then judging {ours['judge_s']:.2f} s; grep -E {grep:.2f} s CPU ({MEGABYTES / grep:.0f} MB/s); "
        f"ratio {ours['scan_s'] / grep:.2f}; peak {ours['peak_mb']:.0f} MB"
    )
    assert (ours["class"], ours["line_no"]) == ("oom.cuda.serve", number)
    assert ours["scan_s"] <= RATIO * grep
    assert ours["peak_mb"] <= MEMORY_MB


@pytest.mark.parametrize("tool", ["grep", "python"])
def test_both_scans_on_the_host(large, tool):
    path, number = large
    began = time.perf_counter()
    log = read_on_host(LocalHost(), str(path), load_catalogue(), by=tool)
    took = time.perf_counter() - began
    print(f"\non the host by {tool}: {took:.1f} s, {MEGABYTES / took:.0f} MB/s, {len(log.lines)} lines kept")
    assert log.get(number) is not None
