"""Show every debate of a run: in the terminal, in a browser, or in one HTML file."""
