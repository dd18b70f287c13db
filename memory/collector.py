"""The garbage collector set aside while a whole tape becomes records.

All of them stay, so each of its passes walks everything for nothing: a third of the time of `moeagent log` on
a thousand experiments.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection inside; as before afterwards."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
