"""A process for an object of a user: called, frozen, and ended with all that it started."""
