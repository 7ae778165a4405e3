"""What runs inside the sandbox: Python's standard library and nothing else, so that it starts small and stays small."""
