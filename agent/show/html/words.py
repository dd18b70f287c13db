"""Words of others in sentences of ours."""


def sentence(text: str) -> str:
    """The text with a full stop, if it has no end of its own."""
    return text if text.rstrip().endswith((".", "!", "?")) else f"{text.rstrip()}."
