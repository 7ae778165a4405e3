"""The tasks of the family, a file each."""
