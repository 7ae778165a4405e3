"""What the interpreters of a program import first, at a level that cannot mount folders of its own."""
