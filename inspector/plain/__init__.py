"""The plain face: debates as lines of text or JSON, for a terminal, a pipe or a file."""

from inspector.plain.figures import print_figures
from inspector.plain.listing import print_list
from inspector.plain.paper import Paper, paper_for
from inspector.plain.running import print_runs
from inspector.plain.searching import print_matches
from inspector.plain.showing import print_debate

__all__ = ["Paper", "paper_for", "print_debate", "print_figures", "print_list", "print_matches", "print_runs"]
