"""Task files of the BigCode evaluation harness run as they are: here is what they import.

Written anew; only the names and the forms of the results are the harness's. Every program runs in the sandbox.
"""
