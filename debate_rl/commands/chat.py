"""``debate solve chat RUN``: chat with a model, in a terminal or through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import typer

from debate import Message, Policy, SampleRequest
from debate.concurrency import run_async
from debate.parsing.sections import find_sections
from debate.policy import context_limit, opens_thinking, token_counter
from debate.seeds import derive_seed
from debate.types import TurnId
from debate.values import whole_text
from debate_rl.commands.console import plain_console, printed, write_json
from debate_rl.commands.options import JsonFile, Overrides, RecipeOrRun, SeedOption, WeightsOption
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.evaluation.asking import policy_of, weights_named
from debate_rl.strategies.solving import with_tools

RESET, QUIT = "/reset", "/quit"


def chat(
    what: RecipeOrRun,
    overrides: Overrides = None,
    weights: WeightsOption = "newest",
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of tokens per reply.")] = 512,
    temperature: Annotated[float, typer.Option(min=0.0, help="Sampling temperature.")] = 0.7,
    top_p: Annotated[float, typer.Option(help="Probability mass to sample from (top-p).")] = 0.9,
    system: Annotated[
        str, typer.Option(metavar="TEXT", help="System message at the start of the conversation.")
    ] = "",
    seed: SeedOption = 0,
    json: JsonFile = None,
) -> None:
    """Chat with a model, one line at a time. Type /reset to clear the conversation and /quit to exit."""
    if not 0 < top_p <= 1:
        raise ValueError(f"--top-p {top_p:g}: must be greater than 0 and at most 1")
    run, config = open_run_or_recipe(what, overrides or ())
    if config.model.tiny is not None or config.debate.prompts == "tiny":
        raise ValueError(
            f"chat: {what} is a tiny model, which understands only its synthetic problems; use debate "
            f"inspect, debate solve play, or a chat model"
        )
    with policy_of(with_tools(config, "none"), weights_named(run, weights, what)) as unopened:
        usual = SampleRequest((), temperature, max_tokens, (), 0, "chat", TurnId(0, 0), top_p=top_p)
        talk = Talk(unopened.open(), system, seed, usual)
        for text in _said():
            if text == RESET:
                talk.messages.clear()
            else:
                plain_console().print(printed(talk.answer(text)))
    if json is not None:
        write_json(json, [{"role": one.role, "content": one.content} for one in talk.everything])


@dataclass(slots=True)
class Talk:
    """A conversation with a policy. ``everything``: all messages. ``messages``: those still in context."""

    policy: Policy
    system: str
    seed: int
    usual: SampleRequest
    messages: list[Message] = field(default_factory=list[Message])
    everything: list[Message] = field(default_factory=list[Message])

    def answer(self, text: str) -> str:
        """Return the reply to a message. Drop the oldest exchanges if the context is full.

        If the message alone does not fit, return a note and do not send the message.
        """
        limit, count, most = context_limit(self.policy), token_counter(self.policy), self.usual.max_tokens
        own = Message("user", whole_text(text))
        if limit is not None:
            most = min(most, max(1, limit // 2))
            while self.messages and count(self._shown([*self.messages, own])) > limit - most:
                del self.messages[:2]
            if (length := count(self._shown([own]))) > limit - most:
                return f"(not sent: a message of {length:,} tokens is too long for the context of {limit:,})"
        number, shown = len(self.everything) // 2, self._shown([*self.messages, own])
        seed, turn = derive_seed(self.seed, "chat", number), TurnId(0, number)
        request = replace(self.usual, messages=shown, max_tokens=most, seed=seed, turn=turn)
        reply = run_async(self.policy.sample(request)).whole()
        thinking = find_sections(reply.text, in_thinking=opens_thinking(self.policy, shown)).thinking
        said = reply.text[thinking.end if thinking else 0 :].strip()
        exchange = [own, Message("assistant", said)]
        self.messages += exchange
        self.everything += exchange
        return said + (" [...]" if reply.stop_reason == "length" else "")

    def _shown(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return (*([Message("system", self.system)] if self.system else []), *messages)


def _said() -> Iterator[str]:
    """Yield the lines of the input that are not blank, until the end or /quit."""
    typed = sys.stdin.isatty() and sys.stdout.isatty()
    if typed:
        plain_console(stderr=True).print(f"{RESET} clears the conversation, {QUIT} exits")
    while True:
        try:
            line = input("> ") + "\n" if typed else sys.stdin.readline()
        except EOFError:
            return
        if not line or line.strip() == QUIT:
            return
        if line.strip():
            yield line.strip()
