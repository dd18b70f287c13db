"""Result files of the other tools: read, corrected or flagged, never mixed."""

import json
import sys
from pathlib import Path

import pytest

from moeagent.memory.errors import HostError, InputError
from moeagent.tools.load.adapters.commands import ForeignRun, command
from moeagent.tools.load.adapters.flat import read_flat
from moeagent.tools.load.adapters.guidellm import read_guidellm
from moeagent.tools.load.adapters.records import MixedToolsError, ToolName, same_tool
from moeagent.tools.load.adapters.runner import counted, run_tool
from moeagent.tools.load.adapters.traps import catalogue, traps_of

FILES = Path(__file__).parents[2] / "fixtures" / "load" / "foreign"


def test_sglangs_own_file_is_read_with_its_traps() -> None:
    (found,) = read_flat(FILES / "sglang-rust-0.5.23.jsonl", "sglang-rust", asked=32)

    assert (found.rung.concurrency, found.rung.completed, found.rung.failed) == (8, 32, 0)
    assert found.rung.output_tok_s == pytest.approx(3944.35, abs=0.1)
    assert found.rung.invalid == ""
    assert {t.name for t in found.traps} >= {"requested-length-credited", "in-stream-error-is-success"}


def test_tokens_credited_to_failed_requests_are_taken_back() -> None:
    (found,) = read_flat(FILES / "sglang-py-details.jsonl", "sglang-py", asked=4)

    assert found.rung.output_tokens == 384
    assert found.rung.output_tok_s == 192.0
    assert "were credited" in found.rung.invalid
    assert next(t for t in found.traps if t.name == "requested-length-credited").corrected


@pytest.mark.parametrize(
    ("tool", "completed", "failed", "tokens"), [("sglang-py", 9, 3, 144), ("sglang-rust", 12, 0, 168)]
)
def test_one_stream_in_four_that_ends_in_an_error(
    tool: ToolName, completed: int, failed: int, tokens: int
) -> None:
    """Twelve answers of 16 tokens, three of them cut in half: 168 were sent, and the Rust client says 192."""
    (found,) = read_flat(FILES / f"{tool}-0.5.23-errors.jsonl", tool, asked=12)

    assert (found.rung.completed, found.rung.failed, found.rung.output_tokens) == (completed, failed, tokens)
    assert not found.rung.usable


def test_answers_without_any_text_credit_nothing(tmp_path: Path) -> None:
    entry = json.loads((FILES / "sglang-rust-0.5.23-errors.jsonl").read_text())
    (tmp_path / "empty.jsonl").write_text(json.dumps({**entry, "total_output_tokens_retokenized": 0}))

    (found,) = read_flat(tmp_path / "empty.jsonl", "sglang-rust", asked=12)

    assert found.rung.output_tokens == 0
    assert "only 0% of the counted tokens are in the text" in found.rung.invalid


def test_requests_that_sglang_does_not_count_are_failures() -> None:
    (found,) = read_flat(FILES / "sglang-rust-0.5.23.jsonl", "sglang-rust", asked=40)

    assert found.rung.failed == 8
    assert not found.rung.usable


def test_vllms_file_is_read() -> None:
    (found,) = read_flat(FILES / "vllm-0.33.0.json", "vllm-py")

    assert (found.rung.completed, found.rung.failed, found.rung.concurrency) == (38, 2, 10)
    assert found.rung.ttft_ms is not None
    assert (found.rung.ttft_ms.p50, found.rung.ttft_ms.p90) == (50.0, 59.0)
    assert found.rung.e2e_ms is not None


def test_vllms_own_file_from_llamacpp_is_read_and_its_own_count_is_told() -> None:
    (found,) = read_flat(FILES / "vllm-0.32.0-llamacpp.json", "vllm-py", asked=12)

    assert (found.rung.concurrency, found.rung.completed, found.rung.failed) == (4, 12, 0)
    assert found.rung.prompt_tokens == 384
    assert found.rung.ttft_ms is not None
    assert found.rung.ttft_ms.p50 == pytest.approx(513.804, abs=0.01)
    assert found.rung.e2e_ms is not None
    assert found.rung.e2e_ms.p99 == pytest.approx(1250.509, abs=0.01)
    assert "usage-with-choices-ignored" in {trap.name for trap in found.traps}
    told = counted(found, 16).rung.note
    assert told == "measured by vllm-py; vllm-py counts 191 tokens for 12 answers of 16"


def test_guidellms_inter_token_latency_is_called_what_it_is() -> None:
    (found,) = read_guidellm(FILES / "guidellm-0.8.1.json")

    assert (found.rung.concurrency, found.rung.completed, found.rung.failed) == (10, 30, 10)
    assert found.rung.itl_ms is None
    assert found.rung.tpot_ms is not None
    assert found.rung.tpot_ms.p50 == 20.0
    assert found.rung.e2e_ms is not None
    assert found.rung.e2e_ms.p50 == 2600.0
    assert found.rung.output_tok_s == 320.0


def test_guidellms_own_file_shows_that_its_load_came_late() -> None:
    (found,) = read_guidellm(FILES / "guidellm-0.8.1-llamacpp.json")

    assert (found.rung.concurrency, found.rung.completed, found.rung.failed) == (4, 12, 0)
    assert (found.rung.prompt_tokens, found.rung.output_tokens) == (612, 192)
    assert found.rung.output_tok_s == pytest.approx(14.553, abs=0.001)
    assert found.rung.e2e_ms is not None
    assert found.rung.e2e_ms.p50 == pytest.approx(3038.224, abs=0.01)
    assert "375 ms late" in found.rung.invalid
    assert "root dispatch delay was 0.375s" in found.rung.note
    assert not found.rung.usable


def test_tools_are_never_mixed() -> None:
    ours = read_flat(FILES / "vllm-0.33.0.json", "vllm-py")

    assert same_tool(ours) == "vllm-py"
    with pytest.raises(MixedToolsError, match="guidellm, vllm-py"):
        same_tool((*ours, *read_guidellm(FILES / "guidellm-0.8.1.json")))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"completed": 3}\n', '{"duration": 1}\nnot json\n'])
def test_files_that_are_no_results_are_clear_errors(tmp_path: Path, content: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(content)

    for read in (lambda: read_flat(path, "sglang-py"), lambda: read_guidellm(path)):
        with pytest.raises(InputError, match="result"):
            read()


def run(tmp_path: Path) -> ForeignRun:
    return ForeignRun(
        url="http://h", model="m", tokenizer="m", concurrency=8, requests=32, input_len=64, output_len=16,
        seed=3, result=str(tmp_path / "fresh.jsonl"),
    )  # fmt: skip


def test_fixed_lengths_are_asked_for_in_each_tools_own_convention(tmp_path: Path) -> None:
    sglang = command("sglang-py", run(tmp_path), launch=["python"])
    vllm = command("vllm-rs", run(tmp_path), launch=["vllm-rs"])

    assert sglang[sglang.index("--random-range-ratio") + 1] == "1.0"
    assert vllm[vllm.index("--random-range-ratio") + 1] == "0"
    guidellm = command("guidellm", run(tmp_path), launch=["guidellm"])
    assert "kind=concurrent,streams=8" in guidellm
    assert "kind=huggingface_auto,model=m" in guidellm
    assert "kind=static,value=3" in guidellm


def test_a_tool_that_fails_hangs_or_writes_nothing_is_a_host_error(tmp_path: Path) -> None:
    python, wanted = sys.executable, run(tmp_path)
    cases = [
        ([python, "-c", "raise SystemExit('Warmup failed')"], "Warmup failed"),
        ([python, "-c", "pass"], "without a result"),
        ([python, "-c", "import time; time.sleep(60)"], "did not end"),
        (["/nonexistent/python"], "cannot be started"),
    ]
    for launch, complaint in cases:
        with pytest.raises(HostError, match=complaint):
            run_tool("sglang-py", wanted, launch=launch, timeout_s=2.0)
    Path(wanted.result).write_text("old")
    with pytest.raises(InputError, match="append"):
        run_tool("sglang-py", wanted, launch=[python], timeout_s=2.0)


def test_every_trap_states_its_source_and_every_tool_has_some() -> None:
    assert all(entry.source and entry.consequence for entry in catalogue().values())
    for tool in ("sglang-py", "sglang-rust", "vllm-py", "vllm-rs", "guidellm"):
        assert traps_of(tool)
