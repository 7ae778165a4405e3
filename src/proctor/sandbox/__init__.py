"""Runs untrusted programs: contained, judged, fast."""
