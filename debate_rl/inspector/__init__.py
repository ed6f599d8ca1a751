"""Every debate of a run, to look at: in the terminal, the browser, or one HTML file."""
