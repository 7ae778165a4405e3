"""Shapes: generated question answering over a canvas of shapes."""

from proctor.shapes.canvas import Shape
from proctor.shapes.dataset import ShapeDataset
from proctor.shapes.task import Task

__all__ = ["Shape", "ShapeDataset", "Task"]
