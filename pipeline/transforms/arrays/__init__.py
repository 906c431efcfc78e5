"""Sums of events in arrays, with numpy and Arrow.

Spark divides the work and moves tables of events between tasks; the rest is done in arrays. In Spark's plans,
a row of an event costs several times as much: to decode it, to shuffle and sort it, and to group it.
"""
