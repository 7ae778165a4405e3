"""The two sides of an evaluation as servers, and the client that brings them together."""
