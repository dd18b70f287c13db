"""The data files: valid, inside the taxonomy, extensible by a user, and usable by grep."""

import re
import subprocess

import pytest

from moeagent.memory.errors import InputError
from moeagent.tools.diagnosis import diagnose, load_catalogue
from moeagent.tools.diagnosis.ere import to_ere
from moeagent.tools.diagnosis.remote import grep_patterns
from moeagent.tools.diagnosis.scanner import search_patterns

TAXONOMY = [
    "oom.weights",
    "oom.kv_pool.startup",
    "oom.graph_capture",
    "oom.cuda.serve",
    "oom.multimodal",
    "oom.other_process",
    "host.oom_killer",
    "host.ram",
    "host.shm",
    "host.disk_full",
    "host.port_in_use",
    "host.driver_mismatch",
    "host.gpu_hw_fault",
    "kernel.tile_smem",
    "kernel.no_image",
    "kernel.unsupported_arch",
    "kernel.illegal_access",
    "kernel.device_assert",
    "kernel.jit_toolchain",
    "comm.p2p",
    "comm.init",
    "comm.nccl_timeout",
    "comm.a2a",
    "compile.dynamo",
    "compile.cuda_graph",
    "config.invalid_arg",
    "config.incompatible",
    "model.unsupported_arch",
    "model.missing_file",
    "model.auth",
    "model.missing_weight",
    "model.quant_mismatch",
    "model.tokenizer",
    "env.missing_package",
    "env.abi_mismatch",
    "runtime.spec_decode",
    "runtime.engine_bug",
    "runtime.watchdog",
    "runtime.hang",
    "runtime.silent_exit",
    "runtime.wrong_output",
    "client.error",
    "benign.none",
]

OWN = """
[[signature]]
id = "house-rule"
kind = "cause"
class = "host.disk_full"
pattern = 'the attic is full of (?P<what>\\w+)'
weight = 90
means = "our storage says so"
source = "our storage"
remedies = [ { target = "attic", direction = "action", change = "move the {what}", why = "it is full" } ]
"""


def test_every_class_of_the_taxonomy_has_meaning_and_remedies():
    catalogue = load_catalogue()
    assert sorted(entry.name for entry in catalogue.classes) == sorted(TAXONOMY)
    assert all(entry.remedies and entry.source for entry in catalogue.classes)


def test_every_signature_has_a_source():
    assert all(signature.source and signature.means for signature in load_catalogue().signatures)


def test_a_users_file_adds_signatures(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    answer = diagnose(
        "2026-01-01 10:00:00 ERROR the attic is full of boxes\n", catalogue=load_catalogue([path])
    )
    assert answer.failure_class == "host.disk_full"
    assert answer.remedies[0].change == "move the boxes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[signature]]\nid = 'x'\n", "Field required"),
        (OWN.replace("weight = 90", "wieght = 90"), "wieght"),
        (OWN.replace("host.disk_full", "host.attic"), "outside the taxonomy"),
        (OWN.replace("(?P<what>", "(?P<what"), "RE2"),
        ("not toml", "TOML"),
    ],
)
def test_a_slip_in_a_users_file_is_named(tmp_path, text, message):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        load_catalogue([path])


def test_an_unknown_signature_names_its_neighbours():
    with pytest.raises(InputError, match="triton-shared-memory"):
        load_catalogue().signature("triton-shard-memory")


def test_grep_understands_every_pattern():
    patterns = "\n".join(grep_patterns(load_catalogue()))
    done = subprocess.run(
        ["grep", "-cE", "-f", "-", "/dev/null"], input=patterns.encode(), capture_output=True
    )
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(?P<n>\d+) GiB", "12 GiB"),
        (r"(?i)out of memory", "Out Of Memory"),
        (r"^Killed\b", "./run.sh: line 1: 4 Killed"),
        (r"block: \[\d+,\d+\]", "block: [6,0]"),
        (r"[\w./-]+\.so\S*: undefined", "/a-b/c.so.1: undefined"),
    ],
)
def test_translation_to_posix(pattern, text):
    done = subprocess.run(["grep", "-cE", "-e", to_ere(pattern)], input=text.encode(), capture_output=True)
    assert done.stdout == b"1\n"


def test_scan_patterns_are_not_anchored():
    assert not any(re.search(r"(?:^|\(\?:|\|)\^", pattern) for pattern in search_patterns(load_catalogue()))
