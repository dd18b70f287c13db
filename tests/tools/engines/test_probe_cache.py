"""A slow probe is asked once per version."""

import sys
from pathlib import Path

from moeagent.tools.engines.probe_cache import ProbeCache
from moeagent.tools.engines.probing import run_probes
from moeagent.tools.engines.protocol import Probe
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Command

COUNTING = "import sys; f = open(sys.argv[1], 'a+'); f.write('x'); f.seek(0); print(f.read())"


def ask(folder: Path, version: str, *, exit_code: int = 0) -> str:
    counter = folder / "counter"
    counter.touch()
    script = f"{COUNTING}; sys.exit({exit_code})"
    probes = (
        Probe("version", Command(("echo", version))),
        Probe("slow", Command((sys.executable, "-c", script, str(counter))), cached_by="version"),
    )
    return run_probes(LocalHost(), probes, cache=ProbeCache(folder / "cache"))["slow"].text.strip()


def test_the_same_version_is_asked_once(tmp_path: Path) -> None:
    assert [ask(tmp_path, "1.0"), ask(tmp_path, "1.0"), ask(tmp_path, "1.1")] == ["x", "x", "xx"]


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    assert [ask(tmp_path, "1.0", exit_code=3), ask(tmp_path, "1.0", exit_code=3)] == ["x", "xx"]


def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    ask(tmp_path, "1.0")
    for file in (tmp_path / "cache").iterdir():
        file.write_text("{")
    assert ask(tmp_path, "1.0") == "xx"
