"""``debate solve chat RUN``: talk to a model, in a terminal or through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.console import plain_console, printed, write_json
from debate_rl.commands.options import JsonFile, Overrides

if TYPE_CHECKING:
    from debate import Completion, Message, Policy, SampleRequest

RESET, QUIT = "/reset", "/quit"
PROMPT = "> "


def chat(
    what: Annotated[
        str, typer.Argument(metavar="RUN|RECIPE", help="A run (its newest weights), or a recipe as it is.")
    ],
    overrides: Overrides = None,
    weights: Annotated[
        str, typer.Option(help="Of a run: newest, best, start, or the step of a checkpoint.")
    ] = "newest",
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a reply, at most.")] = 512,
    temperature: Annotated[float, typer.Option(min=0.0, help="Temperature of the replies.")] = 0.7,
    top_p: Annotated[float, typer.Option(help="Sample among the likely tokens of this mass.")] = 0.9,
    system: Annotated[str, typer.Option(metavar="TEXT", help="A system message before everything.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of the replies.")] = 0,
    json: JsonFile = None,
) -> None:
    """Talk to a model: a line, a reply; /reset forgets what was said, /quit or the end of the input ends."""
    from debate_rl.commands.eval_tasks import policy_of
    from debate_rl.commands.solve import weights_named
    from debate_rl.config.recipes import open_run_or_recipe

    if not 0 < top_p <= 1:
        raise ValueError(f"--top-p {top_p:g}: needs more than 0 and at most 1")
    run, config = open_run_or_recipe(what, overrides or ())
    if config.model.tiny is not None or config.debate.prompts == "tiny":
        raise ValueError(
            f"chat: {what} is a tiny model that knows its own problems and no English; read its debates by "
            "debate inspect, give it a problem by debate solve play, or talk to a chat model"
        )
    path = weights_named(run, weights, what)
    plain = config.model_copy(update={"debate": config.debate.model_copy(update={"tools": "none"})})
    with policy_of(plain, path) as unopened:
        talk = Talk(unopened.open(), system, max_tokens, temperature, top_p, seed)
        for text in _said():
            if text == RESET:
                talk.reset()
            else:
                plain_console().print(printed(talk.answer(text)))
    if json is not None:
        write_json(json, [{"role": one.role, "content": one.content} for one in talk.everything])


def _said() -> Iterator[str]:
    """Yield what is typed or piped, line by line, until the end or /quit; blank lines are nothing."""
    typed = sys.stdin.isatty() and sys.stdout.isatty()
    if typed:
        plain_console(stderr=True).print(f"{RESET} forgets what was said, {QUIT} ends")
    while True:
        if typed:
            try:
                line = input(PROMPT)
            except EOFError:
                return
        elif not (line := sys.stdin.readline()):
            return
        if line.strip() == QUIT:
            return
        if line.strip():
            yield line.strip()


@dataclass(slots=True)
class Talk:
    """A conversation with a policy; ``everything`` is all that was said, ``messages`` what is still known."""

    policy: Policy
    system: str
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    messages: list[Message] = field(default_factory=list["Message"])
    everything: list[Message] = field(default_factory=list["Message"])

    def reset(self) -> None:
        """Forget what was said."""
        self.messages.clear()

    def answer(self, text: str) -> str:
        """Return the reply to a message; the oldest exchanges are forgotten where the context is full.

        A message that does not fit alone is not said, and the reply says so.
        """
        from debate import Message
        from debate.concurrency import run_async
        from debate.parsing.sections import find_sections
        from debate.policy import context_limit, opens_thinking, token_counter
        from debate.values import whole_text

        limit, count = context_limit(self.policy), token_counter(self.policy)
        most = self.max_tokens if limit is None else min(self.max_tokens, max(1, limit // 2))
        own = Message("user", whole_text(text))
        room = None if limit is None else limit - most
        while room is not None and self.messages and count(self._shown([*self.messages, own])) > room:
            del self.messages[:2]
        if room is not None and (length := count(self._shown([own]))) > room:
            return f"(a message of {length:,} tokens is too long for the context of {limit:,}: not said)"
        shown = self._shown([*self.messages, own])
        reply: Completion = run_async(self.policy.sample(self._request(shown, most))).whole()
        thinking = find_sections(reply.text, in_thinking=opens_thinking(self.policy, shown)).thinking
        said = reply.text[thinking.end if thinking else 0 :].strip()
        exchange = [own, Message("assistant", said)]
        self.messages += exchange
        self.everything += exchange
        return said + (" [...]" if reply.stop_reason == "length" else "")

    def _shown(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        from debate import Message

        return (*([Message("system", self.system)] if self.system else []), *messages)

    def _request(self, messages: tuple[Message, ...], most: int) -> SampleRequest:
        from debate import SampleRequest
        from debate.seeds import derive_seed
        from debate.types import TurnId

        number = len(self.everything) // 2
        return SampleRequest(
            messages=messages,
            temperature=self.temperature,
            max_tokens=most,
            stop=(),
            seed=derive_seed(self.seed, "chat", number),
            debate="chat",
            turn=TurnId(0, number),
            top_p=self.top_p,
        )
