"""Intervals, noise floors, the next launch and the confirmation of a gain: pure functions over records.

The model: the logarithm of a launch's score is its configuration's level plus a slow drift of the machine
plus independent launch noise. The launch is the unit; requests within a launch are never counted as repeats.
"""
