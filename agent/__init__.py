"""The loop: command line, campaign settings, state, the graph and its steps, proposers, the judge."""
