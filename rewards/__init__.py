"""Votes become rewards: a vote graph, four streams for each turn, no scheme that teaches nothing."""

from rewards.config import RewardConfig
from rewards.graph import vote_graph
from rewards.peer import PeerRule
from rewards.poll import poll_of_debate
from rewards.scheme import check_scheme
from rewards.score import score_debate, score_votes
from rewards.types import Correct, Rewards, Truth
from rewards.votes import drop_reasons, valid_votes
from rewards.winner import voted_winner

__all__ = [
    "Correct",
    "PeerRule",
    "RewardConfig",
    "Rewards",
    "Truth",
    "check_scheme",
    "drop_reasons",
    "poll_of_debate",
    "score_debate",
    "score_votes",
    "valid_votes",
    "vote_graph",
    "voted_winner",
]
