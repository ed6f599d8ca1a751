"""The prompts that a configuration sends, and the differences between two configurations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import zip_longest
from typing import TYPE_CHECKING

from debate import Completion, Problem, hold_debate
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.rebuilding import held_debate
from debate.prompting.rendering import raw_prompt
from debate.prompting.seating import seat_debate
from debate.types import SUMMARIZER, SampleRequest, TurnId
from debate_rl.config import Config
from debate_rl.engines import prompt_settings

if TYPE_CHECKING:
    from debate_rl.inference.speech import Speech

SETTINGS = ("temperature", "max_tokens", "thinking_tokens", "stop", "top_p", "top_k")
"""Fields of a request that are shown and compared in addition to its text."""


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """A prompt as a model receives it: its turn, its whole text, and the sampling settings of the reply.

    ``tokens`` (P,) and their texts ``pieces`` are empty if there is no tokenizer.
    """

    name: str
    text: str
    settings: dict[str, object]
    tokens: tuple[int, ...] = ()
    pieces: tuple[str, ...] = ()


class _Recorder(ScriptedPolicy):
    """Records the requests of a debate, and replies with a text that names the agent and the round."""

    runs_programs = True  # the recorder's replies contain no programs

    @property
    def remote(self) -> _Recorder:
        """Return this recorder, so that requests of remote seats are recorded too."""
        return self

    async def sample(self, request: SampleRequest) -> Completion:
        self.requests.append(request)
        return Completion((), (), (), self._reply(request), "stop", 0)  # complete, for any stop strings

    def count_continuation(self, messages: object) -> int:
        return 0


def sent_prompts(config: Config, problem: Problem, speech: Speech | None) -> list[SentPrompt]:
    """Return the prompts of the first agent and of the summariser in a debate on a problem, by round.

    The texts of other agents are placeholders, and nothing is cut. ``speech`` turns messages into tokens. If
    it is None, messages are shown as they are, or as a single text if ``model.chat = false``.
    """
    critique = config.debate.protocol == "critique"
    targets = seat_debate(problem, config.debate, config.seed).handles if critique else ()

    def reply(request: SampleRequest) -> str:
        text = _stand_in(request.turn)
        review = "".join(f"<target>{target}</target> {text}\n" for target in targets) or f"{text}\n"
        return f"<solution>\n{text}\n</solution>\n<evaluation>\n{review}</evaluation>"

    recorder = _Recorder(reply)
    debate = asyncio.run(hold_debate(problem, recorder, config.debate, seed=config.seed))
    held = held_debate(debate)
    sent: list[SentPrompt] = []
    for request in recorder.requests:
        if request.turn.agent not in (0, SUMMARIZER):
            continue
        prompt, settings = held.prompt(request.turn), {name: getattr(request, name) for name in SETTINGS}
        name, tokens = f"round {request.turn.round}, {prompt.task}", tuple[int, ...]()
        if speech is not None:
            tokens = speech.encode(prompt.messages)
            text = speech.text.decode(tokens)
            for said in map(_stand_in, (one.turn for one in recorder.requests)):
                text = text.replace(speech.as_read(said), said)  # a small vocabulary lacks its words
        elif config.model.chat is False:
            text = raw_prompt(prompt.messages, config.debate.prompts)
        else:
            text = "\n".join(f"[{message.role}]\n{message.content}" for message in prompt.messages)
        pieces = tuple(speech.text.decode([token]) for token in tokens) if speech is not None else ()
        sent.append(SentPrompt(name, text, settings, tokens, pieces))
    return sent


def _stand_in(turn: TurnId) -> str:
    return f"(what agent {turn.agent} wrote in round {turn.round})"


def differences(ours: Sequence[SentPrompt], theirs: Sequence[SentPrompt]) -> Iterator[str]:
    """Yield the differences between two lists of prompts as lines; no line if the lists are equal.

    Prompts at the same place in the debate are compared. Differing settings are named with both values;
    differing texts are shown as a unified diff.
    """
    for one, other in zip_longest(ours, theirs):
        if one is None or other is None:
            alone = one or other
            yield f"{alone.name if alone else ''}: only {'here' if one else 'there'}"
            continue
        changed = [
            f"{name} {one.settings[name]!r} and {other.settings[name]!r}"
            for name in SETTINGS
            if one.settings[name] != other.settings[name]
        ]
        lines = list(unified_diff(one.text.splitlines(), other.text.splitlines(), lineterm="", n=1))
        if one.text != other.text and not lines:
            changed.append("line breaks at the end")
        if changed or lines:
            yield f"{one.name}: {'; '.join(changed) or 'the text'}"
            yield from lines[2:]


def speech_of(config: Config) -> tuple[Speech | None, str]:
    """Return the configuration's ``Speech`` and "", or None and the reason why there is no tokenizer."""
    from debate_rl.inference.speech import Speech, ids_of_ends
    from debate_rl.models import sketch_model
    from debate_rl.warm_start.tokenizer import tiny_vocabulary

    try:
        model, tokenizer = sketch_model(config.model, vocabulary=tiny_vocabulary(config), on_gpu=False)
    except (ValueError, OSError, ImportError) as error:
        return None, str(error)
    ends = ids_of_ends(tokenizer, model.generation_config)
    return Speech(tokenizer, ends=ends, **prompt_settings(config)), ""
