"""Runs the methods of foreign task code that process outputs: isolated, each call in its own process."""
