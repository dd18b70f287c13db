"""What the agent can do to the world."""
