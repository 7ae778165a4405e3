"""Metrics, with standard errors and confidence intervals."""
