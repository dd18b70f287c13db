"""The simulated command line is that of the pinned release."""

import argparse
import json

import pytest

from moeagent.tools.engines.catalogue import catalogue as engine_catalogue
from moeagent.tools.sim.catalogue import (
    VERSION,
    CommandLineError,
    engine_facts,
    load_catalogue,
    parse,
    parser,
    server_args_line,
)


def options() -> dict[str, argparse.Action]:
    return {name: action for action in parser()._actions for name in action.option_strings}


def test_every_flag_of_the_catalogue_is_accepted_with_its_choices() -> None:
    actions = options()
    for entry in load_catalogue().flags:
        action = actions[entry.flag]
        assert action.dest == entry.dest
        assert tuple(action.choices or ()) == tuple(entry.choices or ()), entry.flag
        assert set(entry.aliases) <= set(actions)
    names = {name for entry in load_catalogue().flags for name in (entry.flag, *entry.aliases)}
    assert {name for name in actions if name.startswith("--") and name != "--help"} == names


def test_flags_and_choices_agree_with_the_engine_catalogue_of_the_same_version() -> None:
    known = {knob.name: knob for knob in engine_catalogue("sglang").knobs(VERSION)}
    mine = {knob.name: knob for knob in engine_facts().knobs}
    assert set(mine) == set(known)
    for name, knob in mine.items():
        if knob.choices:
            assert known[name].choices == knob.choices, name


def test_an_invalid_choice_is_argparse_own_message_and_status_two() -> None:
    with pytest.raises(CommandLineError, match=r"argument --kv-cache-dtype: invalid choice: 'fp7'") as caught:
        parse(["--model-path", "/m", "--kv-cache-dtype", "fp7"])
    assert caught.value.status == 2


def test_prefixes_are_matched_as_the_engine_matches_them() -> None:
    assert parse(["--model-path", "/m", "--tp", "8"])["tp_size"] == 8
    with pytest.raises(CommandLineError, match="ambiguous option: --pp"):
        parse(["--model-path", "/m", "--pp", "2"])


def test_the_server_args_line_of_a_healthy_server_contains_the_word_error() -> None:
    line = server_args_line(parse(["--model-path", "/m", "--log-level-http", "error"]))
    assert line.startswith("server_args=ServerArgs(model_path='/m', tokenizer_path=None")
    assert "log_level_http='error'" in line
    assert "moe_a2a_backend='none'" in line


def test_the_parser_dump_is_json_data() -> None:
    json.dumps([entry.model_dump() for entry in load_catalogue().flags])
