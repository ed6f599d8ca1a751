"""Examples as tokens: the prompt that RL shows, the reply as sampled ones are, and what of it is learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from debate.programs import output_spans
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import agent_prompt
from debate.prompting.rendering import shot_reply
from debate.prompting.seating import prompts_of, seat_debate
from debate.seeds import derive_seed
from debate.types import Message, TurnId
from debate_rl.config import Config
from debate_rl.engines import prompt_settings
from debate_rl.inference.speech import Speech, ids_of_ends
from debate_rl.models import sketch_model
from debate_rl.warm_start.tokenizer import tiny_vocabulary
from envs.errors import DataError
from learner.types import Row

if TYPE_CHECKING:
    from debate_rl.sft.examples import Example

NO_LIMIT = ContextBudget(None, lambda _: 0)


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """One example as tokens: ``ids`` (L,) int32, and which of them are learnt, ``learnt`` (L,) bool."""

    ids: NDArray[np.int32]
    learnt: NDArray[np.bool_]

    def row(self, version: int, index: int = 0) -> Row:
        """Return the row of an example: all that is learnt has weight 1.

        Two rows by two are a star, so that one can show whether reading together is right.
        """
        weights = self.learnt.astype(np.float32)
        return Row(
            input_ids=self.ids.astype(np.int64),
            action_mask=self.learnt,
            sampling_logprobs=np.zeros_like(weights),
            advantages=weights,
            stream=self.learnt.astype(np.int8),
            group_id="sft",
            policy_version=version,
            turn=TurnId(0, 0),
            debate=index // 2,
        )


def rows_of(examples: Sequence[Encoded], version: int = 0) -> list[Row]:
    """Return the rows of examples that are learnt, or measured, together."""
    return [example.row(version, index) for index, example in enumerate(examples)]


class ReplyEncoder:
    """Turns examples into tokens by a run's prompt set, its tokenizer and the template of its model."""

    def __init__(self, config: Config, model: Any, tokenizer: Any) -> None:
        self._debate, self._seed = config.debate, config.seed
        self._texts = prompts_of(config.debate)
        ends = ids_of_ends(model.config, model.generation_config, tokenizer)
        self._speech = Speech(tokenizer, ends=ends, chat=config.model.chat, **prompt_settings(config))

    @classmethod
    def of(cls, config: Config) -> ReplyEncoder:
        """Return the encoder of a configuration, whose model's weights are not loaded."""
        vocabulary = tiny_vocabulary(config)
        return cls(config, *sketch_model(config.model, vocabulary=vocabulary, on_gpu=False))

    def encode(self, example: Example) -> Encoded:
        """Return an example as tokens; DataError, with its location, where it has no form of a reply."""
        messages = example.messages or self.prompt(example)
        prompt = self._speech.encode(messages)
        try:
            reply = self._speech.reply(self.text(example), messages)
        except ValueError as error:
            raise DataError(
                f"{example.location}: {error}; set debate.thinking_tokens = 0, or learn replies that think"
            ) from error
        learnt = np.zeros(len(prompt) + len(reply), np.bool_)
        learnt[len(prompt) :] = self._learnt(reply)
        return Encoded(np.array((*prompt, *reply), np.int32), learnt)

    def prompt(self, example: Example) -> tuple[Message, ...]:
        """Return the prompt of the first round, as RL shows it to one of the agents, whom the seed draws."""
        seed = derive_seed(self._seed, "sft", example.problem.id)
        seating = seat_debate(example.problem, self._debate, seed)
        return agent_prompt(seating, (), seed % self._debate.num_agents, 0, NO_LIMIT).messages

    def text(self, example: Example) -> str:
        """Return the reply: as it is written, or a written solution in the form of the prompt set."""
        return example.reply if example.solution is None else shot_reply(self._texts, example.solution)

    def _learnt(self, reply: tuple[int, ...]) -> NDArray[np.bool_]:
        """Return which tokens of a reply are learnt, (T,): all but those of what a tool wrote."""
        text, offsets = self._speech.text.text_and_offsets(reply)
        first = np.asarray(offsets)
        learnt = np.ones(len(reply), np.bool_)
        for output in output_spans(text):
            learnt[(first >= output.start) & (first < output.end)] = False
        return learnt
