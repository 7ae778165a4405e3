"""A Ray cluster: joined for the time of a run, and crews of long-lived workers on it that are sent work in chunks."""
