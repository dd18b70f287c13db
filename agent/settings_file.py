"""The commented settings file, generated from the settings' own fields: it cannot go stale."""

from collections.abc import Iterator

import tomli_w
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from moeagent.agent.settings import CampaignSettings

HEAD = """# Settings of moeagent. Every line that is commented out shows a default.
# The command line goes over this file; MOEAGENT_<SECTION>__<NAME> in the environment goes between.

"""


def commented_settings() -> str:
    """Every setting with its meaning and default, as TOML."""
    plain, sections = [], []
    for name, field in CampaignSettings.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            sections.append("\n".join([f"[{name}]", *_lines(inner)]))
        else:
            plain.append(_setting(name, field))
    return HEAD + "\n".join(plain) + "\n\n" + "\n\n".join(sections) + "\n"


def _lines(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield _setting(name, field)


def _setting(name: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True, validated_data={})
    comment = "".join(f"# {line.strip()}\n" for line in (field.description or "").splitlines())
    if default is None:
        return f"{comment}# {name} is not set"
    if isinstance(default, dict):
        return f"{comment}# {name} = {{}}"
    spelled = tomli_w.dumps({name: list(default) if isinstance(default, tuple) else default})
    return f"{comment}# {' '.join(spelled.split())}"
