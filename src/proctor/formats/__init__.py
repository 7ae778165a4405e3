"""Files that Proctor and other harnesses read and write."""
