"""One episode: the referee, the two sides as it sees them, the clock and the log."""
