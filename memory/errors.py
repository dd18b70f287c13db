"""The errors that a user sees. The message says what happened, to what, and what to do next.

MoeagentError                 exit code
├── InputError            2   a setting, file or argument: mend it and run again
├── HostError             3   the host: unreachable, refused, port taken, GPU memory held by others
│   └── RemoteError       3   a connection broke during a named operation
├── EngineError           4   the engine: not installed, refused, baseline does not start
├── ModelEndpointError    5   the language model's endpoint (the playbook takes over; fatal only if asked)
├── TapeError             6   the tape: damaged line, wrong format
│   ├── DivergenceError   7   replay met a request that differs from the recorded one
│   └── LoopVersionError  8   the tape was recorded by another loop version
├── AwaitingApproval      9   a launch waits for a person's answer; the run goes on with it
└── Interrupted         130   Ctrl-C or SIGTERM: stopped at a safe point
    └── Paused            0   the slice that was asked for is over
"""


class MoeagentError(Exception):
    """Base of every error with a message for the user."""

    exit_code = 1


class InputError(MoeagentError):
    """A setting, file or argument is wrong."""

    exit_code = 2


class HostError(MoeagentError):
    """The host cannot do what was asked."""

    exit_code = 3


class RemoteError(HostError):
    """A connection broke; the message names what was being done."""


class EngineError(MoeagentError):
    """The engine is missing, refuses the command, or its baseline does not work."""

    exit_code = 4


class ModelEndpointError(MoeagentError):
    """The language model's endpoint did not give a usable answer."""

    exit_code = 5


class TapeError(MoeagentError):
    """The tape cannot be read."""

    exit_code = 6


class DivergenceError(TapeError):
    """Replay met a request that differs from the recorded one."""

    exit_code = 7


class LoopVersionError(TapeError):
    """The tape was recorded by another version of the loop."""

    exit_code = 8


class AwaitingApproval(MoeagentError):  # noqa: N818 - a question is an outcome, not a fault
    """A launch has to be approved and nobody could be asked."""

    exit_code = 9


class Interrupted(MoeagentError):  # noqa: N818 - an interruption is an outcome, not a fault
    """Ctrl-C or SIGTERM."""

    exit_code = 130


class Paused(Interrupted):
    """The run stopped where --pause-after wanted it to."""

    exit_code = 0
