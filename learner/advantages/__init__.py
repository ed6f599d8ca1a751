"""Turn rewards into advantages: first each stream separately (``baselines``), then per turn (``turns``)."""

from learner.advantages.baselines import stream_advantages
from learner.advantages.config import AdvantageConfig, Author, StreamSettings
from learner.advantages.turns import Advantages, TurnAdvantage, turn_advantages

__all__ = [
    "AdvantageConfig",
    "Advantages",
    "Author",
    "StreamSettings",
    "TurnAdvantage",
    "stream_advantages",
    "turn_advantages",
]
