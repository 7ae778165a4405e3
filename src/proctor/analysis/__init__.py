"""What runs show once they are stored: reports, comparisons, leaderboards, sweeps, plots."""
