"""The same items as the one-item path makes, thousands at a time: draws, canvases and texts as numpy arrays."""
