"""Exams of other packages, set and marked by Proctor."""
