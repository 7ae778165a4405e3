"""Games of our own."""
