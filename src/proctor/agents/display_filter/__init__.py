"""A filter of the X protocol, through which an isolated agent can see and press, and nothing else."""
