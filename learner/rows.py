"""Make training rows from turns with advantages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from learner.advantages import AdvantageConfig, TurnAdvantage
from learner.token_streams import JUDGE, token_streams
from learner.types import Row, Transition


def make_rows(
    transitions: Sequence[Transition], advantages: Sequence[TurnAdvantage | None], config: AdvantageConfig
) -> list[Row]:
    """Return one row for each turn that has a signal, in order. ``advantages``: one for each turn.

    Generator tokens get only the generator's advantage, and judge tokens only the judge's. Tokens of both get
    the sum, and a critic's tokens get the critic's advantage; both kinds are otherwise treated as judge
    tokens. The format advantage is added to the judge's tokens. If there are none, it goes to the token that
    ended the reply, or to no token if the reply was cut off; a turn without another signal then has no row.
    Forced tokens are not actions. ValueError if a policy returned no tokens to train on.
    """
    pairs = zip(transitions, advantages, strict=True)
    rows = (_row(transition, advantage, config) for transition, advantage in pairs if advantage is not None)
    return [row for row in rows if row is not None]


def _row(transition: Transition, advantage: TurnAdvantage, config: AdvantageConfig) -> Row | None:
    turn = transition.turn
    completion = turn.completion
    where = f"problem {transition.problem_id!r}, agent {turn.id.agent}, round {turn.id.round}"
    if not completion.tokens or not completion.prompt_tokens:
        raise ValueError(f"{where}: the policy gave no token ids; training needs an engine that returns them")
    if len(completion.logprobs) != len(completion.tokens):
        counts = f"{len(completion.tokens)} tokens but {len(completion.logprobs)} log-probabilities"
        raise ValueError(f"{where}: {counts}")
    stream = token_streams(turn, evaluation=config.evaluation)
    given = token_advantages(stream, advantage, ended=completion.stop_reason == "stop")
    others = (advantage.generator, advantage.judge, advantage.critic)
    if advantage.format and others == (None, None, None) and not given.any():
        return None
    prompt = len(completion.prompt_tokens)
    return Row(
        input_ids=np.array(completion.prompt_tokens + completion.tokens, np.int64),
        action_mask=_after(prompt, stream > 0),
        sampling_logprobs=_after(prompt, np.array(completion.logprobs, np.float32)),
        advantages=_after(prompt, given),
        stream=_after(prompt, np.minimum(stream, JUDGE)),
        group_id=transition.problem_id,
        policy_version=completion.policy_version,
        turn=turn.id,
        # greedy sampling reports the log-probabilities of temperature 1
        temperature=transition.persona.temperature or 1.0,
        debate=transition.debate,
    )


def token_advantages(
    stream: NDArray[np.int8], part: TurnAdvantage, *, ended: bool = True
) -> NDArray[np.float32]:
    """Return the advantage of each token, (T,) float32, from its stream (T,).

    ``ended``: whether the reply ended with its last token and was not cut off.

    >>> token_advantages(np.array([1, 2, 3], np.int8), TurnAdvantage(1.0, 2.0, -0.5)).tolist()
    [1.0, 1.5, 2.5]
    >>> token_advantages(np.array([1, 1, 1], np.int8), TurnAdvantage(1.0, None, -0.5)).tolist()
    [1.0, 1.0, 0.5]
    """
    generator, judge = part.generator or 0.0, part.judge or 0.0
    by_stream = np.array([0.0, generator, judge, generator + judge, part.critic or 0.0], np.float32)
    of_form = (stream & JUDGE) > 0
    if ended and not of_form.any():
        of_form[np.flatnonzero(stream)[-1:]] = True
    return by_stream[stream] + np.where(of_form, np.float32(part.format or 0.0), np.float32(0.0))


def _after(prompt: int, values: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([np.zeros(prompt, values.dtype), values])
