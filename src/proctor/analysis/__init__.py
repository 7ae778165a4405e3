"""Analysis of stored runs: reports, comparisons, leaderboards, sweeps, plots."""
