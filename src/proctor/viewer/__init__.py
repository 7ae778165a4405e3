"""The results page: shows a store in a browser, from a server or from exported files."""
