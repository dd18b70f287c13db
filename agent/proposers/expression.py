"""A small, safe expression language for playbook data: arithmetic, comparison, logic, a few functions.

`min(peak, 512)`, `gpus > 1 and not nvlink`, `flag('--tp-size', 1) < gpus`. Parsed by Python's own parser and
walked over a white list, so nothing outside the list can run. A fact that nobody knows raises
UnknownFactError: the caller decides what not knowing means.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Value = bool | int | float | str
Function = Callable[..., Value]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}


class UnknownFactError(LookupError):
    """The expression needs a fact that the survey did not find."""


class ExpressionError(ValueError):
    """The text is not an expression of this language."""


def _pow2(value: float) -> int:
    """The smallest power of two that is at least the value."""
    return 1 if value <= 1 else 1 << math.ceil(math.log2(value))


def _up_to(value: float, multiple: int) -> int:
    """The value rounded up to a multiple."""
    return math.ceil(value / multiple) * multiple


PURE_FUNCTIONS: dict[str, Function] = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "round": round,
    "sqrt": math.sqrt,
    "pow2": _pow2,
    "up_to": _up_to,
}


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text!r} is not an expression: {error.msg}") from error


def names(text: str) -> frozenset[str]:
    """Every name that the expression uses, functions included."""
    return frozenset(node.id for node in ast.walk(_parse(text)) if isinstance(node, ast.Name))


def evaluate(text: str, facts: Mapping[str, Value | None], functions: Mapping[str, Function]) -> Value:
    """The expression's value.

    Raises UnknownFactError where a fact that decides it is None or no number, ExpressionError for a name or a
    form that the language does not have.
    """
    try:
        value = _Walker(text, facts, functions).walk(_parse(text))
    except (TypeError, ArithmeticError) as error:
        raise UnknownFactError(f"{text!r} cannot be computed from what is known here: {error}") from error
    if not isinstance(value, bool | int | float | str):
        raise ExpressionError(f"{text!r} gives {value!r}, which is no value of a flag")
    return value


class _Walker:
    def __init__(
        self, text: str, facts: Mapping[str, Value | None], functions: Mapping[str, Function]
    ) -> None:
        self.text, self.facts, self.functions = text, facts, functions

    def walk(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return value
            case ast.Name(id=name):
                return self._fact(name)
            case ast.Tuple(elts=items):
                return tuple(self.walk(item) for item in items)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.walk(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.walk(operand)
            case ast.BoolOp(op=op, values=parts):
                return self._logic(parts, stop_at=isinstance(op, ast.Or))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](self.walk(left), self.walk(right))
            case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(op) in _COMPARE for op in ops):
                return self._compare(left, ops, rest)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.walk(body) if self.walk(test) else self.walk(orelse)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in self.functions:
                return self.functions[name](*(self.walk(arg) for arg in args))
        raise ExpressionError(
            f"{ast.unparse(node)!r} in {self.text!r} is not part of the playbook's language"
        )

    def _fact(self, name: str) -> Value:
        if name not in self.facts:
            raise ExpressionError(f"{name!r} in {self.text!r} is not a fact of the playbook")
        value = self.facts[name]
        if value is None:
            raise UnknownFactError(f"{name} is not known, and {self.text!r} depends on it")
        return value

    def _logic(self, parts: list[ast.expr], *, stop_at: bool) -> bool:
        """And, or with three values: a part that decides wins over parts that are not known."""
        unknown: UnknownFactError | None = None
        for part in parts:
            try:
                if bool(self.walk(part)) is stop_at:
                    return stop_at
            except UnknownFactError as error:
                unknown = error
        if unknown is not None:
            raise unknown
        return not stop_at

    def _compare(self, left: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr]) -> bool:
        value = self.walk(left)
        for op, node in zip(ops, rest, strict=True):
            other = self.walk(node)
            if not _COMPARE[type(op)](value, other):
                return False
            value = other
        return True
