"""Data of the simulated machine: the pinned catalogue, models, machines, rules and traces."""
