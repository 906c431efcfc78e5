"""Attacks of one client, and what a well-behaved neighbour notices: `python -m bench.attacks`."""
