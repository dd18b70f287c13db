"""How a configuration lays the model out over the GPUs: measurements of one layout say less of another."""

from moeagent.memory.errors import InputError
from moeagent.memory.records import ServerConfig
from moeagent.tools.predict.calibration import layout_key
from moeagent.tools.predict.settings import read_settings


def layout(config: ServerConfig) -> str:
    """Degrees of tensor, expert, data and pipeline parallelism, and the all-to-all; "" when unknown."""
    try:
        return layout_key(read_settings(config))
    except InputError:  # values that no engine takes, or an engine of which nothing is known
        return ""
