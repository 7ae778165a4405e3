"""Agents that play in real time, and evaluators that judge them."""
