"""Programs with a window as environments, and what judges them by what they show."""
