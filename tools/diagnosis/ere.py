"""RE2 patterns as POSIX extended regular expressions, for the grep of a host that has nothing else.

The translation may match more than the original, never less (anchors go, since lines carry prefixes);
whatever it finds is matched again by the signatures themselves.
"""

import re

_CLASS = {"d": "0-9", "w": "[:alnum:]_", "s": "[:space:]"}
_OUTSIDE = {
    "d": "[0-9]",
    "w": "[[:alnum:]_]",
    "s": "[[:space:]]",
    "S": "[^[:space:]]",
    "W": "[^[:alnum:]_]",
    "b": "",
}
_TOKEN = re.compile(
    r"\((?P<open>\?:|\?P<\w+>)"
    r"|(?P<flag>\(\?i\))"
    r"|(?P<set>\[\^?(?:\\.|[^\]\\])+\])"
    r"|\\(?P<escape>.)"
    r"|(?P<lazy>(?:[*+?]|\{\d+(?:,\d*)?\})\?)"
    r"|(?P<char>.)",
    re.DOTALL,
)
_KEPT = frozenset("()|*+?.{}$")


def to_ere(pattern: str) -> str:
    """The pattern for `grep -E`; `(?i)` is spelt out letter by letter."""
    ignore_case = False
    parts: list[str] = []
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            parts.append("(")
        elif token["flag"]:
            ignore_case = True
        elif token["set"]:
            parts.append(_bracket(token["set"], ignore_case))
        elif token["escape"]:
            parts.append(_escape(token["escape"]))
        elif token["lazy"]:
            parts.append(token["lazy"][:-1])
        else:
            parts.append(_char(token["char"], ignore_case))
    return "".join(parts)


def _char(char: str, ignore_case: bool) -> str:
    if char == "^":
        return ""
    if ignore_case and char.isalpha():
        return f"[{char.upper()}{char.lower()}]"
    return char


def _escape(char: str) -> str:
    if char in _OUTSIDE:
        return _OUTSIDE[char]
    return f"\\{char}" if char in "()|*+?.{}[]^$\\" else char


def _bracket(text: str, ignore_case: bool) -> str:
    negated = text.startswith("[^")
    body = text[2 if negated else 1 : -1]
    parts: list[str] = []
    literal = ""
    for token in re.finditer(r"\\(?P<escape>.)|(?P<range>.-[^\\])|(?P<char>.)", body):
        if token["escape"] and token["escape"] in _CLASS:
            parts.append(_CLASS[token["escape"]])
        elif token["escape"] == "S":
            return "."
        elif token["range"]:
            parts.append(token["range"])
        else:
            literal += token["escape"] or token["char"]
    if ignore_case:
        literal += literal.swapcase() if literal.isalpha() else ""
    first = "]" if "]" in literal else ""
    caret, dash = ("^" if "^" in literal else ""), ("-" if "-" in literal else "")
    plain = "".join(char for char in literal if char not in "]^-")
    return "[" + ("^" if negated else "") + first + "".join(parts) + plain + caret + dash + "]"
