"""The ``debate`` command line, one file for each command; the only place that wires all packages together."""
