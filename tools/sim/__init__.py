"""The simulated machine: marked simulated in everything that it produces."""
