"""Policies on worlds: the loop and its rivals, launch for launch, in virtual time.

A world is any object with the members of `moeagent.tools.sim.worlds.BenchWorld`; `guard.load_factory` takes a
user's own from `module.py:factory`.
"""
