"""An engine install that is started through a wrapper: its launch prefix is the wrapper's, then its own."""

from moeagent.memory.errors import InputError
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.hosts.wrappers import PROBE_VARIABLES, refuse_unwrapped, resolve


def through_wrapper(install: EngineInstall) -> EngineInstall:
    """The install with its whole prefix, or as it is where it has no wrapper.

    Raises InputError for a wrapper that cannot be controlled, and for one that nobody declared.
    """
    refuse_unwrapped(install.command)
    if install.wrapper is None:
        return install
    prefix = resolve(install.wrapper).with_variables((*install.env, *PROBE_VARIABLES))
    if not install.command:
        raise InputError(
            f"engine install {install.name}: with a wrapper say the command too, up to its flags, as it runs "
            'inside, such as ["python3", "-m", "sglang.launch_server"]'
        )
    return install.model_copy(update={"command": (*prefix, *install.command), "outside": len(prefix)})
