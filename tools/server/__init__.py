"""Server life cycle on a host: start, wait until ready, stop, verify."""
