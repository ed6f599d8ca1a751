"""The inspector in a browser: pages made here from a run's transcripts, and one HTML file of them."""

from debate_rl.inspector.web.serving import serve

__all__ = ["serve"]
