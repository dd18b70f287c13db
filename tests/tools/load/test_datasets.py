import json
from pathlib import Path

import pytest

from moeagent.memory.errors import InputError
from moeagent.tools.load.arrivals import arrivals, burst, constant, poisson, trace
from moeagent.tools.load.datasets import conversations_from_file, prompts_from_file, trace_from_file
from moeagent.tools.load.generator.prompts import random_prompt
from moeagent.tools.load.spec import vocabulary


def written(folder: Path, *lines: str) -> Path:
    path = folder / "data.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_prompt_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = written(tmp_path, '{"prompt": "hello", "output_len": 5}', "", '{"prompt": [1, 2, 3]}')

    assert [(p.prompt, p.out) for p in prompts_from_file(path, output_len=9)] == [
        ("hello", 5),
        ([1, 2, 3], 9),
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{broken", "line 2"),
        ("[1]", "line 2.*list where an object"),
        ('{"text": "x"}', "line 2.*`prompt` must be"),
        ('{"prompt": ""}', "line 2.*`prompt` must be"),
        ('{"prompt": [1, -2]}', "line 2.*token ids"),
        ('{"prompt": "x", "output_len": 0}', "line 2.*not a positive"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        prompts_from_file(written(tmp_path, '{"prompt": "good"}', line), output_len=4)


def test_missing_and_empty_files_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        prompts_from_file(tmp_path / "none.jsonl", output_len=4)
    with pytest.raises(InputError, match="is empty"):
        prompts_from_file(written(tmp_path, ""), output_len=4)


def test_conversations_give_first_turns_and_reply_lengths(tmp_path: Path) -> None:
    talk = {"conversations": [{"from": "human", "value": "why?"}, {"from": "gpt", "value": "because " * 30}]}
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps([talk, {"conversations": [talk["conversations"][0]]}]))

    (only,) = conversations_from_file(path, output_len=None, seed="1")
    assert (only.prompt, only.out) == ("why?", 40)
    path.write_text("[{]")
    with pytest.raises(InputError, match="line 1"):
        conversations_from_file(path, output_len=None, seed="1")


def test_a_trace_keeps_its_times_in_seconds(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '{"timestamp": 2000, "input_length": 7, "output_length": 3}',
        '{"arrival_s": 0.5, "prompt": "a"}',
    )

    timed = trace_from_file(path, output_len=9)
    assert [t.at_s for t in timed] == [0.5, 2.0]
    assert len(str(timed[1].prompt.prompt).split()) == 7
    with pytest.raises(InputError, match="line 1: no arrival_s"):
        trace_from_file(written(tmp_path, '{"prompt": "a"}'), output_len=9)


def test_arrivals_have_the_rate_that_was_asked() -> None:
    times = poisson(50.0, 5000, seed="1").times_s
    assert abs(5000 / times[-1] - 50) < 3
    assert poisson(50.0, 10, seed="1") == poisson(50.0, 10, seed="1") != poisson(50.0, 10, seed="2")
    assert constant(4.0, 3).times_s == (0.0, 0.25, 0.5)
    assert burst(10.0, 6, size=3).times_s == (0.0, 0.0, 0.0, 0.3, 0.3, 0.3)
    assert trace([10.0, 11.0, 14.0], rate=1.0).times_s == (0.0, 0.5, 2.0)
    with pytest.raises(InputError, match="at least two"):
        trace([1.0])
    with pytest.raises(InputError, match="choose poisson"):
        arrivals("normal", 1.0, 5, seed="1")


def spec(**changes: object) -> dict:
    base = {"seed": "0/8", "vocabulary": vocabulary(), "words": 40, "out": 16, "prefix_words": 0, "groups": 1}
    return base | {"ids": None, "spread": 0.0} | changes


def test_random_prompts_are_unique_and_repeat_with_their_seed() -> None:
    prompts = {random_prompt(spec(), n)[0] for n in range(300)}

    assert len(prompts) == 300
    assert random_prompt(spec(), 5) == random_prompt(spec(), 5)
    assert random_prompt(spec(), 5) != random_prompt(spec(seed="1/8"), 5)


def test_a_group_shares_its_prefix_and_nothing_else() -> None:
    words = [random_prompt(spec(prefix_words=30, groups=2), n)[0].split() for n in range(4)]

    assert words[0][:30] == words[2][:30] != words[1][:30] == words[3][:30]
    assert words[0][30:] != words[2][30:]


def test_token_ids_stay_in_range_and_lengths_spread() -> None:
    ids, _ = random_prompt(spec(ids=(100, 200)), 1)
    lengths = {random_prompt(spec(spread=0.5), n)[1] for n in range(100)}

    assert len(ids) == 40
    assert all(100 <= i < 200 for i in ids)
    assert min(lengths) >= 8
    assert max(lengths) <= 24
    assert len(lengths) > 8
