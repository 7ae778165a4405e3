"""Reads the answer out of what a model replied; `proctor.shapes.answers` has the parsers."""

UNDETERMINED = "Cannot be determined"
