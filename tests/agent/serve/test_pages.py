"""What the pages show, of sound runs and of others."""

import random
import shutil
from pathlib import Path

import pytest
from e2e.command import moeagent
from parts.hostile import HOSTILE
from parts.made_run import BASELINE, MadeRun, facts, hypothesis, rung, write_run
from parts.served import Served, served

from moeagent.memory.ledger import Conclusion, Incumbent
from moeagent.memory.lock import held
from moeagent.memory.pulse import Pulse, PulseFile
from moeagent.memory.records import ConfigChange
from moeagent.memory.records.approval import Approval

PATHS = ("", "/log", "/report", "/hypotheses/H1", "/hypotheses/H99", "/launches/L1/log", "/launches/x/log")


def test_the_list_names_every_run_with_its_state(site: Served) -> None:
    text = site.get("/").text
    for run in ("made", "open", "hostile"):
        assert f'href="/runs/{run}"' in text
    assert "finished" in text
    assert "cut off" in text


def test_a_run_is_shown_with_answer_launches_and_hypotheses(site: Served) -> None:
    text = site.get("/runs/made").text
    assert "H1 is better by" in text
    assert "SIMULATED" in text
    assert "<svg" in text
    assert 'href="/runs/made/launches/L5/log"' in text
    assert 'href="/runs/made/hypotheses/H5"' in text


def test_the_log_is_narrowed_by_words_verdict_and_flag(site: Served) -> None:
    assert "5 of 5 hypotheses" in site.get("/runs/made/log").text
    assert "1 of 5 hypotheses" in site.get("/runs/made/log?verdict=blocked").text
    assert "1 of 5 hypotheses" in site.get("/runs/made/log?q=OOM+prefill").text
    assert "5 of 5 hypotheses" in site.get("/runs/made/log?flag=chunked").text
    assert "0 of 5 hypotheses" in site.get("/runs/made/log?q=nothing+of+that").text
    assert "0 of 5 hypotheses" in site.get("/runs/made/log?verdict=no-such").text


def test_one_hypothesis_is_shown_whole(site: Served) -> None:
    text = site.get("/runs/made/hypotheses/H3").text
    for piece in ("blocked", "oom.cuda.serve", "Pivot 1", "Remedies", "Predicted and measured", "symptoms"):
        assert piece in text
    assert '<span class="cause"><i>3</i> torch.OutOfMemoryError' in text
    assert "?line=3#line-3" in text


def test_a_server_log_is_shown_around_a_line_and_searched(site: Served) -> None:
    text = site.get("/runs/made/launches/L5/log?line=3&find=LOADING").text
    assert "1 line holds it" in text
    assert 'id="line-3" class="cause"' in text
    assert site.get("/runs/made/launches/L5/log?line=99999999999999999999").status == 200
    assert site.get("/runs/made/launches/L5/log?line=-1").status == 200


def test_findings_are_searched_and_lead_to_their_runs(site: Served) -> None:
    text = site.get("/findings?text=chunked&verdict=improved&gpu=rtx").text
    assert "2 findings" in text
    assert 'href="/runs/made/hypotheses/H1"' in text
    assert "0 findings" in site.get("/findings?text=nothing&engine=vllm").text
    assert site.get('/findings?text="+OR+*&verdict=nonsense').status == 200


def test_the_page_asks_again_and_is_told_when_nothing_changed(site: Served) -> None:
    part = site.get("/runs/made", HX_Request="true").text
    assert "<html" not in part
    stamp = part.partition('name="stamp" value="')[2].partition('"')[0]
    assert site.get(f"/runs/made?stamp={stamp}", HX_Request="true").status == 204
    assert site.get("/runs/made?stamp=other", HX_Request="true").status == 200


def test_hostile_text_stays_text(site: Served) -> None:
    for path in ("/runs/hostile", "/runs/hostile/log", "/runs/hostile/hypotheses/H1", "/findings"):
        answer = site.get(path)
        assert answer.status == 200
        assert "<script>window" not in answer.text
        assert "\x1b" not in answer.text
    assert "&lt;script&gt;window.broken" in site.get("/runs/hostile/hypotheses/H1").text
    assert HOSTILE["html"] not in site.get(f"/runs/{HOSTILE['html'].replace(' ', '%20')[:40]}").text


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../../etc/passwd",
        "/runs/..%2f..%2f..%2fetc%2fpasswd/log",
        "/runs/%2e%2e/log",
        "/runs/made%00/log",
        "/runs/made/launches/..%2f..%2ftape.jsonl/log",
        "/static/..%2f..%2fsite.py",
        "/static/../templates/base.jinja",
        "/runs/made/tape.jsonl",
        "/runs/",
        "/%ff",
    ],
)
def test_no_path_leads_out_of_what_there_is(site: Served, path: str) -> None:
    answer = site.get(path)
    assert answer.status in (307, 404)
    assert "root:" not in answer.text


def test_a_run_that_does_not_exist_is_404_with_the_nearest(site: Served) -> None:
    answer = site.get("/runs/mado")
    assert answer.status == 404
    assert "did you mean made" in answer.text


def test_damaged_runs_are_shown_as_far_as_they_are_sound(site: Served, shelf: Path) -> None:
    whole = write_run(shelf / "runs", "damaged").tape
    data = whole.read_bytes()
    rng = random.Random(7)
    for _ in range(25):
        place = rng.randrange(len(data))
        cut = rng.random() < 0.3
        whole.write_bytes(
            data[:place] if cut else data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        )
        for path in PATHS:
            assert site.get(f"/runs/damaged{path}").status in (200, 404, 409), (place, cut, path)
        assert site.get("/").status == 200
    half = len(data) // 2
    whole.write_bytes(data[:half] + b"X" + data[half:])
    text = site.get("/runs/damaged").text
    assert "Not all of this run can be read" in text
    assert "does not match its checksum" in text
    assert "The answer" in text
    shutil.rmtree(whole.parent)
    assert site.get("/runs/damaged").status == 404


def test_a_tape_of_another_version_is_named_and_not_an_error(site: Served, shelf: Path) -> None:
    later = MadeRun(shelf / "runs", "later")
    later.decide_raw("prophecy", {"text": "from the future"})
    later.close()
    (shelf / "runs" / "empty").mkdir()
    (shelf / "runs" / "empty" / "tape.jsonl").write_bytes(b"")
    (shelf / "runs" / "old").mkdir()
    (shelf / "runs" / "old" / "tape.jsonl").write_bytes(b'{"an": "older format"}\n')
    for run in ("later", "empty", "old"):
        for path in PATHS:
            assert site.get(f"/runs/{run}{path}").status in (200, 404, 409)
        assert "cannot be read" in site.get(f"/runs/{run}").text
    assert site.get("/").status == 200
    for run in ("later", "empty", "old"):
        shutil.rmtree(shelf / "runs" / run)


def test_a_missing_log_and_a_damaged_review_file_are_told(site: Served, shelf: Path) -> None:
    run = write_run(shelf / "runs", "bare")
    for blob in (run.path / "logs").iterdir():
        blob.unlink()
    (run.path / "review.jsonl").write_text("not a review\n")
    answer = site.get("/runs/bare/hypotheses/H3")
    assert answer.status == 200
    assert "line 1 is not a review" in answer.text
    assert "torch.OutOfMemoryError" in answer.text
    assert site.get("/runs/bare/launches/L5/log").status == 409
    shutil.rmtree(run.path)


def test_no_runs_and_no_store_give_a_page(tmp_path: Path) -> None:
    with served(tmp_path) as site:
        assert "There is no run here yet" in site.get("/").text
        assert "0 findings" in site.get("/findings").text
        assert list(tmp_path.glob("runs*")) == []


def test_a_taken_port_is_named(site: Served, tmp_path: Path) -> None:
    told = moeagent(tmp_path, "serve", "--port", str(site.port), code=2).stderr
    assert f"port {site.port}" in told
    assert "Choose another with --port" in told


def test_the_step_under_way_is_shown_with_its_ladder_and_progress(site: Served, shelf: Path) -> None:
    run = MadeRun(shelf / "runs", "busy")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.launch(BASELINE)
    run.load("L2", 10, rung(10))
    run.load("L2", 64)
    folder = run.close()
    size = folder.tape.stat().st_size
    PulseFile(folder.path).write(Pulse(tape_bytes=size, done=32, total=128, rate=4321.0))
    with held(folder.path):
        text = site.get("/runs/busy").text
    assert "measuring L2 at concurrency 64" in text
    assert "L2 for the baseline" in text
    assert "32 of 128 requests, 4,321 tok/s" in text
    assert 'value="0.250"' in text
    shutil.rmtree(folder.path)


def test_a_run_that_waits_says_how_to_answer(site: Served, shelf: Path) -> None:
    run = MadeRun(shelf / "runs", "waits")
    change = ConfigChange(set_flags={"--chunked-prefill-size": 1024})
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.launch(BASELINE)
    run.decide(hypothesis(1, change, BASELINE))
    config = BASELINE.apply(change).id
    run.decide(Approval(hypothesis="H1", config=config, answer="awaiting", by="the mode always"))
    run.decide(Conclusion(status="awaiting approval", reason="H1 waits for approval"))
    folder = run.close()
    assert "moeagent resume waits --approve-next" in site.get("/runs/waits").text
    assert "awaiting by the mode always" in site.get("/runs/waits/hypotheses/H1").text
    shutil.rmtree(folder.path)
