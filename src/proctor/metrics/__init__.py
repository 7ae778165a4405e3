"""Metrics and the statistics that make them honest."""
