"""The core: samples, tasks, the run loop. It knows no family."""
