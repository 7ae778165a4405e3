"""A Ray cluster: join it for a run, and keep pools of actors on it that take work in chunks."""
