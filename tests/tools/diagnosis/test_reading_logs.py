"""Forms in which a log comes: rotated, compressed, UTF-16, coloured, redrawn, binary, endless, truncated."""

import gzip
import io

import pytest
from bench.diagnosis.synthetic import CRASH, ROOT, STARTUP, block, write_log

from moeagent.memory.errors import InputError
from moeagent.tools.diagnosis import Scanner, diagnose, diagnose_log, load_catalogue
from moeagent.tools.diagnosis.lines import clean, parse_line, seconds
from moeagent.tools.diagnosis.reading import open_log, read_stream, sniff_encoding

LOG = STARTUP + CRASH
LINE = LOG.splitlines().index(next(line for line in LOG.splitlines() if line.startswith(ROOT))) + 1


def check(answer):
    assert answer.failure_class == "oom.cuda.serve"
    assert answer.line_no == LINE
    assert answer.root_line.startswith(ROOT)


@pytest.mark.parametrize(
    "data",
    [
        LOG.encode(),
        LOG.replace("\n", "\r\n").encode(),
        LOG.encode("utf-16"),
        LOG.encode("utf-16-le"),
        b"\xef\xbb\xbf" + LOG.encode(),
        LOG.replace("torch.Out", "\x1b[31mtorch.Out").replace("Killed", "\x1b[0mKilled").encode(),
        LOG.replace("torch.Out", "Capturing batches: 10%\rCapturing batches: 20%\rtorch.Out").encode(),
        LOG.replace("SIGQUIT", "\x00\x01\xff SIGQUIT").encode("latin-1"),
        gzip.compress(LOG.encode()),
    ],
    ids=["plain", "crlf", "utf16", "utf16-no-mark", "bom", "ansi", "redrawn", "stray-binary", "gzip"],
)
def test_forms_of_a_log(tmp_path, data):
    path = tmp_path / "server.log"
    path.write_bytes(data)
    check(diagnose(path))


def test_rotated_by_copytruncate_begins_with_a_hole(tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(b"\0" * (5 << 20) + LOG.encode())
    assert diagnose(path).failure_class == "oom.cuda.serve"


def test_truncated_in_the_middle_of_a_line():
    cut = LOG[: LOG.index("93.77 GiB")]
    check(diagnose(cut))


def test_lines_and_text_give_the_same_answer():
    assert diagnose(LOG.splitlines()) == diagnose(LOG)


def test_the_middle_of_a_large_log_is_found(tmp_path):
    filler = b"".join(block(seed) for seed in range(12))
    path = tmp_path / "large.log"
    path.write_bytes(STARTUP.encode() + filler + CRASH.encode() + filler)
    number = STARTUP.count("\n") + filler.count(b"\n") + LINE - STARTUP.count("\n")
    answer = diagnose(path)
    assert (answer.failure_class, answer.line_no) == ("oom.cuda.serve", number)


def test_a_flood_of_one_message_hides_nothing_and_stays_small(tmp_path):
    flood = (
        b"[2026-02-20 10:06:00 TP0] RuntimeError: CUDA error: an illegal memory access was encountered\n"
        * 60_000
    )
    catalogue = load_catalogue()
    log = read_stream(
        io.BytesIO(STARTUP.encode() + flood + b"No space left on device\n" + flood), "x", catalogue
    )
    assert len(log.lines) < 10_000
    assert diagnose_log(log).failure_class == "host.disk_full"


def test_follow_mode_reads_increments():
    scanner = Scanner(load_catalogue())
    scanner.feed(STARTUP.encode())
    assert diagnose_log(scanner.log()).healthy
    scanner.feed(CRASH.encode())
    check(diagnose_log(scanner.log()))


def test_pieces_of_any_size_give_the_same_log(tmp_path):
    path = tmp_path / "large.log"
    write_log(path, 9 << 20)
    data = path.read_bytes()
    whole, pieces = Scanner(load_catalogue()), Scanner(load_catalogue())
    whole.feed(data)
    for at in range(0, len(data), 700_001):
        pieces.feed(data[at : at + 700_001])
    one, other = diagnose_log(whole.log()), diagnose_log(pieces.log())
    assert (one.failure_class, one.line_no) == (other.failure_class, other.line_no)


def test_a_line_without_end_stays_bounded():
    scanner = Scanner(load_catalogue())
    for _ in range(40):
        scanner.feed(b"downloading 10%\r" * 65_536)
    scanner.feed(b"\n" + LOG.encode())
    assert diagnose_log(scanner.log()).failure_class == "oom.cuda.serve"


def test_what_cannot_be_read_is_said_clearly(tmp_path):
    with pytest.raises(InputError, match="directory"):
        open_log(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        open_log(tmp_path / "none.log")
    (tmp_path / "empty.log").write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        diagnose(tmp_path / "empty.log")
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 4000)
    with pytest.raises(InputError, match="binary"):
        diagnose(tmp_path / "binary")


@pytest.mark.parametrize(
    ("text", "stream", "level", "body"),
    [
        ("[2026-02-20 10:00:00 TP3 EP3] hello", "TP3 EP3", "", "hello"),
        (
            "(Worker_TP2 pid=9) ERROR 10-13 05:03:31 [multiproc_executor.py:671] boom",
            "Worker_TP2",
            "ERROR",
            "boom",
        ),
        (
            "(VllmWorkerProcess pid=13109) ERROR 08-19 07:51:24 x.py:226] boom",
            "VllmWorkerProcess 13109",
            "ERROR",
            "boom",
        ),
        ("[rank1]:[E623 09:21:42.118812034 ProcessGroupNCCL.cpp:690] boom", "rank1", "ERROR", "boom"),
        ("vllm-1  | INFO 11-18 18:07:28 worker.py:232] hello", "", "INFO", "hello"),
        ("0.00.065.444 E gguf_init_from_file: boom", "", "ERROR", "gguf_init_from_file: boom"),
        ("2026-01-01T00:00:00.1Z stderr F [2026-01-01 00:00:00 TP0] hello", "TP0", "", "hello"),
        ("plain words", "", "", "plain words"),
    ],
)
def test_prefixes_are_taken_apart(text, stream, level, body):
    line = parse_line(1, text)
    assert (line.stream, line.level, line.body) == (stream, level, body)


def test_stamps_and_cleaning():
    assert seconds("2026-02-20 10:01:00") - seconds("2026-02-20 10:00:00") == 60
    assert seconds("0.01.065.444") == pytest.approx(1.065)
    assert seconds("nonsense") is None
    assert clean("\x1b[31mred\x1b[0m\x07") == "red"
    assert sniff_encoding(b"\0" * 100) == "utf-8"
