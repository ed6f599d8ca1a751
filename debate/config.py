"""Settings of a debate. Defaults are defined only here; TOML or ``key=value`` can set every field."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal, Self, TypeAlias

from pydantic import Field, ValidationError, field_validator, model_validator

from debate.personas import PERSONAS, PRESETS, Persona, check_personas, own_personas
from debate.protocols import refuse_impossible
from debate.ramps import Weight, values_of
from debate.settings import Settings
from debate.tools import FENCE

_LABEL = re.compile(r"[^\W_]+(?:[ _-][^\W_]+)*")
MOST_ROUNDS = 64
Seat: TypeAlias = Literal["learning", "frozen", "remote"]
"""The model that plays an agent: the learning policy, its initial weights, or another model."""


class WriterConfig(Settings):
    """How an auxiliary model summarizes the history or shortens solutions."""

    max_tokens: int = Field(default=1024, ge=1)
    """Maximum tokens of one reply of the model that summarizes or shortens solutions."""
    temperature: float = Field(default=0.7, ge=0)
    """Sampling temperature of the summary. Personas do not change it."""
    thinking_tokens: int | None = Field(default=None, ge=0)
    """Maximum thinking tokens of the model that summarizes or shortens solutions. None uses
    ``debate.thinking_tokens``."""


class _Enabled(Settings):
    enabled: bool = False
    """Show agents a summary instead of the others' turns. All agents read the same summary."""


class _Over(Settings):
    over: int | None = Field(default=None, ge=1)
    """Shorten solutions longer than this many tokens (3000, for instance) before others read them. None
    shortens no solution."""


class SummaryConfig(WriterConfig, _Enabled):  # the fields of the second base come first
    """A summary by an auxiliary model, shown instead of the history."""


class CompressionConfig(WriterConfig, _Over):
    """Long solutions shortened by a model before other agents read them."""

    temperature: float = Field(default=0.3, ge=0)
    """Sampling temperature of the model that shortens solutions."""

    @model_validator(mode="after")
    def _shorter(self) -> Self:
        if self.over is not None and self.max_tokens > self.over:
            raise ValueError(
                f"over: {self.over}, but a shortened solution may have max_tokens = {self.max_tokens}; "
                f"lower max_tokens, or raise over"
            )
        return self


class LevelConfig(Settings):
    """A smaller debate for problems of one level."""

    level: str = Field(min_length=1)
    """The level, as it is written in the problems."""
    num_agents: int | None = Field(default=None, ge=1)
    """Number of agents on problems of this level, at most ``debate.num_agents``. None uses
    ``debate.num_agents``."""
    num_rounds: int | None = Field(default=None, ge=1)
    """Number of rounds on problems of this level, at most ``debate.num_rounds``. None uses
    ``debate.num_rounds``."""

    @field_validator("level", mode="before")
    @classmethod
    def _numbers_are_names(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def changes(self) -> dict[str, int]:
        """Return the sizes that are set for this level, by key."""
        sizes = {"num_agents": self.num_agents, "num_rounds": self.num_rounds}
        return {name: size for name, size in sizes.items() if size is not None}


class DebateConfig(Settings):
    """The protocol: who speaks, how often, what is shown to whom."""

    same = dict.fromkeys(("max_tokens", "temperature", "thinking_tokens"), WriterConfig)

    protocol: Literal["debate", "critique", "zero_sum", "consultancy"] = "debate"
    """What happens in the rounds. "debate": every agent solves and judges. "critique": solutions, criticism,
    revisions. "zero_sum": a proposer, a critic with a rival solution, and judges. "consultancy": judges read
    one of two solutions in full, and only the answer of the other (docs/protocol.md)."""
    num_agents: int = Field(default=3, ge=1, le=64)
    """Number of agents N. One policy plays all of them. 1 is plain single-agent RL."""
    num_rounds: int = Field(default=3, ge=1, le=MOST_ROUNDS)
    """Number of rounds R in which every agent writes a solution. With ``protocol = "critique"``, every second
    one has criticism instead of solutions. With ``min_rounds``, this is the maximum."""
    min_rounds: int | None = Field(default=None, ge=1)
    """End a debate as soon as all agents agree on the answer, but not before this many rounds; the final
    ballot follows. None: every debate has ``num_rounds`` rounds."""
    seats: tuple[Seat, ...] = ()
    """The model of each agent: "learning", "frozen" (the weights at the start of training) or "remote" (the
    model of ``remote.endpoint``). Empty: all learn (docs/protocol.md)."""
    by_level: tuple[LevelConfig, ...] = ()
    """Tables [[debate.by_level]], each with level, num_agents and num_rounds: problems of that level get
    smaller debates."""
    final_ballot: bool = True
    """Add a final round in which agents only vote, on the solutions of the last round."""
    ballot: Literal["all", "swiss"] = "all"
    """What a judge compares in the final ballot. "all": the solutions of all other agents. "swiss": one pair,
    chosen by Swiss pairing (docs/protocol.md)."""
    ask_swapped: bool = False
    """Ask each judge of the final ballot a second time, with the solutions in reverse order. The second votes
    do not count; ``rewards.swap_weight`` rewards judges whose two votes agree."""
    history_rounds: int = Field(default=1, ge=-1)
    """Number of past rounds shown to an agent: the last K, all (-1), or none (0)."""
    conversation: bool = False
    """Make an agent's turns one conversation: each prompt extends the previous prompt and reply by one
    message with the newest round. Needs ``history_rounds = -1`` (docs/protocol.md)."""
    personas: tuple[Persona, ...] | str | None = None
    """Personas of the agents: a list of your own, "module:NAME", or a preset ("default", "wide"). More agents
    than personas repeat the list. None uses the five personas of "default"."""
    judge_own: bool = False
    """Let agents compare their own work with the work of others."""
    order: Literal["per_debate", "per_viewer"] = "per_debate"
    """Order in which agents' texts are shown. "per_debate": the same for all readers, so that engines can
    cache the prompt. "per_viewer": drawn for each reader."""
    max_tokens: int = Field(default=2048, ge=1)
    """Maximum completion tokens of a turn, thinking excluded. With ``tools``, program output is included."""
    thinking_tokens: int = Field(default=0, ge=0)
    """Maximum thinking tokens before the reply; at this limit, thinking is forced to end. 0 turns thinking
    off."""
    context_tokens: int | None = Field(default=None, ge=1)
    """Maximum tokens of prompt and completion together. Histories are cut to fit, and vLLM reserves memory
    for this many tokens. None uses the limit of the policy."""
    tools: Literal["none", "python"] = "none"
    """"python" runs the Python blocks of a reply, and the reply continues after their output
    (docs/tools.md)."""
    tool_calls: int = Field(default=4, ge=1, le=64)
    """Maximum number of programs that one turn may run."""
    summary: SummaryConfig = SummaryConfig()
    compress: CompressionConfig = CompressionConfig()
    prompts: str = "default"
    """The name of a shipped prompt set, or the path of your own TOML file (see debate/prompts/)."""
    handles: tuple[str, ...] | None = None
    """Labels from which the agents' handles are drawn. None draws a letter and a digit."""
    stop: tuple[str, ...] = ()
    """Stop strings in addition to those of the prompt set and the closing tag of the last section due."""
    prompt_stops: bool = True
    """Also stop replies at the stop strings of the prompt set."""
    untagged: bool = False
    """Treat a reply of round 0 without tags as a solution. This is always so if no agent reads another's
    reply."""
    temperature: Weight | None = None
    """Sampling temperature of every agent. None uses the temperature of each persona. With a schedule,
    evaluations use its last value."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling: sample from the smallest set of tokens whose total probability is at least this. 1 is
    off. For evaluation and play only; training refuses other values."""
    top_k: int = Field(default=0, ge=0)
    """Sample from this many of the most likely tokens. 0 is off. For evaluation and play only."""

    @field_validator("personas")
    @classmethod
    def _possible_personas(cls, value: tuple[Persona, ...] | str | None) -> tuple[Persona, ...] | str | None:
        if isinstance(value, str) and value not in PRESETS and ":" not in value:
            raise ValueError(
                f'unknown preset {value!r}; valid: {", ".join(PRESETS)}, or "package.module:NAME"'
            )
        if value == ():
            raise ValueError("needs at least one persona")
        check_personas(value if isinstance(value, tuple) else ())
        return value

    @field_validator("stop")
    @classmethod
    def _no_empty_stop(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "" in value:
            raise ValueError("an empty stop string would end every reply at its first token; leave it out")
        return value

    @field_validator("handles")
    @classmethod
    def _possible_handles(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for label in value or ():
            check_label(label)
        return value

    @model_validator(mode="after")
    def _possible_conversation(self) -> Self:
        if self.conversation and self.history_rounds != -1:
            raise ValueError(
                f"history_rounds: {self.history_rounds}, but debate.conversation = true keeps all rounds; "
                "set debate.history_rounds = -1"
            )
        if self.conversation and self.summary.enabled:
            raise ValueError(
                "conversation: true shows the turns themselves, but debate.summary.enabled = true shows a "
                "summary instead; set one of them to false"
            )
        return self

    @model_validator(mode="after")
    def _possible_swap(self) -> Self:
        needed = {
            "conversation = false": not self.conversation,
            "summary.enabled = false": not self.summary.enabled,
        }
        if self.ask_swapped and (lacking := [key for key, met in needed.items() if not met]):
            raise ValueError(
                f"ask_swapped: true shows the solutions of the final ballot again, and needs "
                f"debate.{lacking[0]}; set that, or leave out ask_swapped"
            )
        return self

    @model_validator(mode="after")
    def _possible_tools(self) -> Self:
        if self.tools != "none" and (early := next((one for one in self.stop if one in FENCE), None)):
            raise ValueError(
                f"stop: {early!r} would end every reply at its first program; leave it out, or "
                'set debate.tools = "none"'
            )
        return self

    @model_validator(mode="after")
    def _possible_protocol(self) -> Self:
        refuse_impossible(self)
        return self

    @model_validator(mode="after")
    def _possible_stop(self) -> Self:
        least = self.min_rounds
        if least is None:
            return self
        if least >= self.num_rounds:
            raise ValueError(
                f"min_rounds: {least}, but a debate has at most num_rounds = {self.num_rounds}, so no "
                f"debate could end earlier; lower min_rounds, or leave it out"
            )
        if self.num_agents == 1:
            raise ValueError(f"min_rounds: {least}, but one agent alone always agrees; leave it out")
        if self.protocol == "critique" and least < 3:
            raise ValueError(
                f"min_rounds: {least}, but a critique has at least 3 rounds; set it to 3 or more"
            )
        return self

    @model_validator(mode="after")
    def _possible_compression(self) -> Self:
        if self.compress.over is not None and self.summary.enabled:
            raise ValueError(
                f"compress.over: {self.compress.over}, but debate.summary.enabled = true shows no solutions; "
                "leave out one of them"
            )
        return self

    @model_validator(mode="after")
    def _possible_seats(self) -> Self:
        if self.seats and len(self.seats) != self.num_agents:
            raise ValueError(
                f"seats: {len(self.seats)} are given, but num_agents = {self.num_agents}; name one for each "
                "agent, or leave out seats"
            )
        if self.seats and "learning" not in self.seats:
            raise ValueError(
                f'seats: {", ".join(self.seats)}: no agent learns; make at least one seat "learning"'
            )
        return self

    @model_validator(mode="after")
    def _possible_levels(self) -> Self:
        levels = [one.level for one in self.by_level]
        for index, one in enumerate(self.by_level):
            where = f"by_level.{index} (level {one.level!r})"
            if one.level in levels[:index]:
                raise ValueError(f"{where}: is listed twice; leave one of them out")
            changes = one.changes()
            if not changes:
                raise ValueError(f"{where}: changes nothing; set num_agents or num_rounds")
            for name, size in changes.items():
                if size > getattr(self, name):
                    raise ValueError(
                        f"{where}: {name} = {size} is more than debate.{name} = {getattr(self, name)}, the "
                        f"maximum for all levels; raise the maximum, and list the levels with smaller debates"
                    )
            try:
                type(self).model_validate(dict(self.of_level(one.level)))
            except ValidationError as error:
                message = error.errors()[0]["msg"].removeprefix("Value error, ")
                raise ValueError(f"{where}: {message}") from error
        return self

    @model_validator(mode="after")
    def _enough_handles(self) -> Self:
        different = len({handle.upper() for handle in self.handles or ()})
        if self.handles is not None and different < self.num_agents:
            raise ValueError(
                f"handles: {self.num_agents} agents need {self.num_agents} different labels, got {different}"
            )
        return self

    def seat(self, agent: int) -> Seat:
        """Return which model plays an agent.

        >>> [DebateConfig(num_agents=2, seats=("learning", "frozen")).seat(agent) for agent in range(2)]
        ['learning', 'frozen']
        """
        return self.seats[agent] if self.seats else "learning"

    def learns(self, agent: int) -> bool:
        """Return whether the learning policy plays an agent."""
        return self.seat(agent) == "learning"

    @property
    def learners(self) -> int:
        """The number of agents that learn."""
        return sum(map(self.learns, range(self.num_agents)))

    def of_level(self, level: str) -> Self:
        """Return the protocol for problems of a level.

        ``min_rounds`` is dropped if a debate of that level could not end early. With fewer agents, the first
        seats are kept.

        >>> config = DebateConfig(num_agents=5, num_rounds=4, by_level=({"level": 1, "num_agents": 3},))
        >>> [config.of_level(level).num_agents for level in ("1", "2")]
        [3, 5]
        """
        if not self.by_level:
            return self
        changes = [one.changes() for one in self.by_level if one.level == level]
        chosen = self.model_copy(update={**(changes[0] if changes else {}), "by_level": ()})
        chosen = chosen.model_copy(update={"seats": self.seats[: chosen.num_agents]})
        least = chosen.min_rounds
        if least is None or (least < chosen.num_rounds and chosen.num_agents > 1):
            return chosen
        return chosen.model_copy(update={"min_rounds": None})

    def protocols(self) -> list[Self]:
        """Return the protocol for problems without a named level, then the protocol of each level."""
        return [self.of_level(""), *(self.of_level(one.level) for one in self.by_level)]

    def one_round(self, *, alone: bool = False) -> Self:
        """Return a protocol with one round of solutions, all by the learning policy.

        ``alone``: use only one agent, with the first persona.

        >>> DebateConfig(num_agents=5, num_rounds=4, min_rounds=2).one_round().num_rounds
        1
        """
        changes: dict[str, object] = {
            "protocol": "debate",
            "num_rounds": 1,
            "min_rounds": None,
            "final_ballot": False,
            "by_level": (),
            "seats": (),
        }
        one = {"num_agents": 1, "personas": self.agent_personas[:1]} if alone else {}
        return self.model_copy(update=changes | one)

    @property
    def summary_thinking(self) -> int:
        """Maximum tokens for the summarizer's thinking."""
        own = self.summary.thinking_tokens
        return self.thinking_tokens if own is None else own

    @property
    def compress_thinking(self) -> int:
        """Maximum thinking tokens of the model that shortens solutions."""
        own = self.compress.thinking_tokens
        return self.thinking_tokens if own is None else own

    @property
    def agent_personas(self) -> tuple[Persona, ...]:
        """The persona of each agent (N,); the list of personas is repeated if it is too short.

        Only this property imports personas that are given as "module:NAME".

        >>> [persona.name for persona in DebateConfig(num_agents=6).agent_personas][5]
        'Methodical Analyst'
        """
        if isinstance(self.personas, str):
            pool = PRESETS.get(self.personas) or own_personas(self.personas)
        else:
            pool = self.personas or PERSONAS
        seated = (pool[agent % len(pool)] for agent in range(self.num_agents))
        if self.temperature is None:
            return tuple(seated)
        return tuple(replace(persona, temperature=values_of(self.temperature)[-1]) for persona in seated)


def check_label(label: str) -> None:
    """Raise ValueError unless the label consists of words of letters and digits.

    >>> check_label("Agent 1")
    """
    if not _LABEL.fullmatch(label):
        raise ValueError(f'debate.handles: {label!r} must be made of letters and digits, such as "K7"')
