"""The results page: a store, shown in a browser, by a server of its own or as files."""
