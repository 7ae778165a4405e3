"""Runs the methods of foreign task code that see what a model wrote: behind the walls, each call in its own process."""
