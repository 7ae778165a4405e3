"""Hexagon: walls close in from six sides, a cursor runs round the middle and looks for the gap."""
