"""Vision models that play in windows: what they are shown, and what their replies press."""
