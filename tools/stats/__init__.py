"""Intervals, noise floors and verdicts."""
