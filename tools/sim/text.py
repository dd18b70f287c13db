"""Deterministic greedy text, a stand-in tokenizer, and the prefix cache."""

import re
import zlib
from array import array
from collections import OrderedDict

_TOKEN = re.compile(r"\s?\w{1,7}|\s?[^\w\s]|\s+")
_SYLLABLES = (
    "ra",
    "ten",
    "mo",
    "sil",
    "ver",
    "ka",
    "dor",
    "in",
    "lu",
    "pas",
    "te",
    "gor",
    "na",
    "bel",
    "or",
    "ish",
)
WORDS = tuple(f" {one}{two}" for one in _SYLLABLES for two in _SYLLABLES)
GARBAGE = "!"
BLOCK = 256
CACHE_BLOCKS = 60_000
EOS_BASE, EOS_SPREAD = 24, 200

Prompt = str | list[int]


def count_tokens(prompt: Prompt) -> int:
    """Tokens of a prompt: about one for each word of up to seven letters; ids count as they are."""
    return len(prompt) if isinstance(prompt, list) else max(len(_TOKEN.findall(prompt)), 1)


def _raw(prompt: Prompt) -> bytes:
    return array("q", prompt).tobytes() if isinstance(prompt, list) else prompt.encode()


class Answer:
    """The greedy answer to one prompt: the same words whenever the same prompt is asked."""

    def __init__(self, prompt: Prompt, *, garbage: bool) -> None:
        self._state = zlib.crc32(_raw(prompt)) or 1
        self.natural_length = EOS_BASE + self._state % EOS_SPREAD
        self._garbage = garbage

    def next_word(self) -> str:
        """The next token's text."""
        self._state = (self._state * 1103515245 + 12345) & 0x7FFFFFFF
        return GARBAGE if self._garbage else WORDS[self._state >> 8 & 0xFF]


class PrefixCache:
    """Which prompt beginnings were seen, in blocks; what the radix cache does to repeated prompts."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._seen: OrderedDict[int, None] = OrderedDict()

    def hit(self, prompt: Prompt, tokens: int) -> int:
        """Tokens of the prompt that are already cached; the prompt is cached from now on."""
        if not self._enabled:
            return 0
        raw, key, known, matching = _raw(prompt), 0, 0, True
        blocks = range(0, len(raw) - BLOCK + 1, BLOCK)
        for start in blocks:
            key = zlib.crc32(raw[start : start + BLOCK], key)
            matching = matching and key in self._seen
            known += matching
            self._seen[key] = None
        while len(self._seen) > CACHE_BLOCKS:
            self._seen.popitem(last=False)
        return min(tokens * known * BLOCK // max(len(raw), 1), tokens - 1)

    def flush(self) -> None:
        """Forget everything."""
        self._seen.clear()
