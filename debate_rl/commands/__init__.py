"""The ``debate`` command line; the only place that wires all packages together.

``main`` has the table of commands, each in a module of its own that is loaded when it is called. What loads
torch, scipy's slow parts, a browser or a terminal application is imported where it is used.
"""
