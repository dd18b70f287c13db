"""The inference engines: command line, readiness, stages, effective configuration."""
