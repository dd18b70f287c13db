"""Memory and speed before the launch."""
