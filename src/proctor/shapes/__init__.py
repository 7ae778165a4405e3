"""Shapes: generated question answering over a canvas of shapes."""

from proctor.shapes.canvas import Shape
from proctor.shapes.task import Task

__all__ = ["Shape", "Task"]
