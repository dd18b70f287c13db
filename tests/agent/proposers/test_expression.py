import pytest

from moeagent.agent.proposers.expression import (
    PURE_FUNCTIONS,
    ExpressionError,
    UnknownFactError,
    evaluate,
    names,
)

FACTS = {"gpus": 8, "nvlink": False, "sm": 120, "quant": "nvfp4", "peak": 1000, "unknown": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("gpus > 1 and not nvlink", True),
        ("min(peak, 512)", 512),
        ("up_to(peak, 256)", 1024),
        ("pow2(peak)", 1024),
        ("quant in ('nvfp4', 'fp8')", True),
        ("90 <= sm < 100", False),
        ("gpus // 2 if nvlink else gpus", 8),
        ("-gpus + 1", -7),
        ("gpus > 100 and unknown > 3", False),
        ("unknown > 3 or gpus == 8", True),
    ],
)
def test_values(text, value):
    assert evaluate(text, FACTS, PURE_FUNCTIONS) == value


def test_a_fact_that_nobody_knows_is_told_apart_from_no():
    with pytest.raises(UnknownFactError, match="unknown"):
        evaluate("gpus > 1 and unknown > 3", FACTS, PURE_FUNCTIONS)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "gpus.__class__",
        "[x for x in (1, 2)]",
        "lambda: 1",
        "open('/etc/passwd')",
        "2 ** 9999999",
        "missing + 1",
        "f'{gpus}'",
        "(1, 2)",
        "gpus >",
    ],
)
def test_everything_else_is_refused(text):
    with pytest.raises(ExpressionError):
        evaluate(text, FACTS, PURE_FUNCTIONS)


def test_names_are_found_for_the_check_at_load():
    assert names("min(peak, flag('--x')) > gpus") == {"min", "peak", "flag", "gpus"}
