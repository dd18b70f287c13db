"""Text of logs and language models as a page or a terminal may show it: nothing executed, nothing hidden."""

MAX_CHARS = 2000
"""Of one text; the rest is counted, and stands in the run's logs."""
SHORT_CHARS = 240


def visible(text: str, *, limit: int = MAX_CHARS) -> str:
    """Control and invisible characters become escapes that can be read; a huge text is cut and says so."""
    cut = text[:limit]
    shown = "".join(c if c.isprintable() or c in "\n\t" else _escape(c) for c in cut)
    left = len(text) - len(cut)
    return f"{shown} [... {left:,} more characters]" if left else shown


def short(text: str) -> str:
    """For a place where the full text stands elsewhere on the page."""
    return visible(text, limit=SHORT_CHARS)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
