"""A measured server start as a shell script, a systemd unit, a compose file or a Kubernetes deployment."""
