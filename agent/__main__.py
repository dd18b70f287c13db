"""`moeagent` and `python -m moeagent.agent`: one clear line for every error that a user can act on."""

import os
import sys

from moeagent.memory.errors import MoeagentError


def main() -> None:
    """Run the command line."""
    # LangSmith tracing can be on in a user's environment and would send prompts away.
    os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
    from moeagent.agent.cli.app import app

    try:
        app()
    except MoeagentError as error:
        print(f"moeagent: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe is gone (`moeagent log | head`): nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


if __name__ == "__main__":
    main()
