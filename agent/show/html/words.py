"""Small pieces of sentences."""


def count(number: int, one: str, many: str) -> str:
    """Such as `1 launch` and `2 launches`."""
    return f"{number} {one if number == 1 else many}"


def sentence(text: str) -> str:
    """The text with a full stop, if it has no end of its own."""
    return text if text.rstrip().endswith((".", "!", "?")) else f"{text.rstrip()}."
