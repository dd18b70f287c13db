"""What each format's own reader makes of an export, by the rules that its documentation gives."""

import json
import re

import yaml

C_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "s": " "}


def unit_lines(text, key):
    """The values of one key of a systemd unit, comments left out."""
    found = [line.partition("=") for line in text.split("\n") if not line.startswith(("#", ";"))]
    return [value for name, _, value in found if name == key]


def systemd_words(line):
    """systemd.syntax(7): words, quotes, C-style escapes; then systemd.unit(5): %% is a percent sign."""
    words, word, quote, position = [], None, "", 0
    while position < len(line):
        c = line[position]
        if c == "\\":
            word = (word or "") + C_ESCAPES[line[position + 1]]
            position += 1
        elif quote and c == quote:
            quote = ""
        elif not quote and c in "\"'":
            quote, word = c, word or ""
        elif not quote and c == " ":
            words, word = [*words, word], None
        else:
            word = (word or "") + c
        position += 1
    assert not quote
    words.append(word)
    assert all("%" not in w.replace("%%", "") for w in words)
    return [w.replace("%%", "%") for w in words]


def read_systemd(text, secrets=None):
    """systemd.service(5): in ExecStart $$ is a dollar sign and ${NAME} a variable; not in Environment."""
    [start] = unit_lines(text, "ExecStart")
    argv = [filled(word, r"\$\$|\$\{(\w+)\}", secrets or {}) for word in systemd_words(start)]
    env = {}
    for line in unit_lines(text, "Environment"):
        [assignment] = systemd_words(line)
        name, _, value = assignment.partition("=")
        env[name] = value
    return argv, env


def filled(text, pattern, values):
    """Dollar signs and references put in; any other dollar sign would be read as something else."""

    def one(found):
        return values[found[1]] if found[1] else "$"

    assert "$" not in re.sub(pattern, "", text)
    return re.sub(pattern, one, text)


def read_compose(text, secrets=None):
    """The Compose specification, interpolation: $$ is a dollar sign, ${NAME:?message} a required variable."""
    [service] = yaml.safe_load(text)["services"].values()

    def value(text):
        return filled(text, r"\$\$|\$\{(\w+):\?[^}]*\}", secrets or {})

    return (
        [value(word) for word in service["entrypoint"]],
        {name: value(text) for name, text in service["environment"].items()},
    )


def read_kubernetes(text, secrets=None):
    """Kubernetes, dependent variables: $$ is a dollar sign, $(NAME) a variable that stands before."""
    [container] = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    env = dict(secrets or {})
    for entry in container["env"]:
        if "value" in entry:
            env[entry["name"]] = filled(entry["value"], r"\$\$|\$\((\w+)\)", env)
    return [filled(word, r"\$\$|\$\((\w+)\)", env) for word in container["command"]], env


def read_json(text, secrets=None):
    """Texts, and lists of texts and secrets."""
    told = json.loads(text)

    def value(word):
        return (
            word
            if isinstance(word, str)
            else "".join(part if isinstance(part, str) else (secrets or {})[part["secret"]] for part in word)
        )

    return [value(word) for word in told["argv"]], {name: value(word) for name, word in told["env"].items()}
