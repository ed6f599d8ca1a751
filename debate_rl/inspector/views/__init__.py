"""The content of the inspector's views as plain values: no markup, colours or files.

Everything comes from a ``transcripts.Record``, which is never changed. A record that cannot come from a
debate is refused with field and value (``transcripts.record.check_record``).
"""

from debate_rl.inspector.views.debate import DebateView, Piece, TurnView, adoption_view, debate_view
from debate_rl.inspector.views.parsing import (
    FailureView,
    FieldChange,
    TurnForensics,
    parse_forensics,
    reparsed,
)
from debate_rl.inspector.views.tokens import TokenPiece, token_view
from debate_rl.inspector.views.votes import Arrow, RoundGraph, vote_graphs

__all__ = [
    "Arrow",
    "DebateView",
    "FailureView",
    "FieldChange",
    "Piece",
    "RoundGraph",
    "TokenPiece",
    "TurnForensics",
    "TurnView",
    "adoption_view",
    "debate_view",
    "parse_forensics",
    "reparsed",
    "token_view",
    "vote_graphs",
]
