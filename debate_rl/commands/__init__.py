"""The ``debate`` command line, one file for each command; the only place that wires all packages together.

These files import the other packages inside functions: ``debate --help`` stays fast, and a package of the
user's own that stands in the way of ours is named before any of them is loaded.
"""
