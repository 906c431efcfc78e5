"""Attacks of one client, and their effect on a neighbour that keeps to its quota: `python -m
bench.attacks`.
"""
