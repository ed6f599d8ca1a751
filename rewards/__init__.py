"""Turn votes and grades into rewards: a vote graph, and a few reward streams for each turn.

Schemes from which nothing can be learned are refused.
"""

from rewards.config import RewardConfig, check_scheme
from rewards.graph import vote_graph
from rewards.labels import Credit
from rewards.peer import PeerRule
from rewards.score import score_debate, score_debates, score_votes
from rewards.types import STREAMS, Correct, Rewards, Truth
from rewards.votes import ballot_box, drop_reasons, valid_votes
from rewards.winner import voted_winner

__all__ = [
    "STREAMS",
    "Correct",
    "Credit",
    "PeerRule",
    "RewardConfig",
    "Rewards",
    "Truth",
    "ballot_box",
    "check_scheme",
    "drop_reasons",
    "score_debate",
    "score_debates",
    "score_votes",
    "valid_votes",
    "vote_graph",
    "voted_winner",
]
