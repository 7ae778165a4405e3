"""Environments that are stepped: Gymnasium's environments, and those with its methods."""
