"""Where models run: servers, and engines in this process."""
