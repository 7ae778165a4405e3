"""The display as an isolated agent has it: it can see and press, and nothing else."""
