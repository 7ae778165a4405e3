"""Hexagon: walls close in from six sides, a cursor runs round the middle and looks for the gap."""

import os

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # which pygame reads when it is imported
