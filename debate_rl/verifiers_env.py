"""Debates as an environment of verifiers 0.4 (``vf-eval debate-rl``), and our advantages for its trainers.

Each turn is one trace of the agent at its seat ("learning", "frozen" or "remote"). The trace has the turn's
rewards by stream; the first trace of a debate also has the debate's record in our format.
"""

# pyright: standard, reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import httpx
import verifiers.v1 as vf
from msgspec.structs import replace as with_values
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.runtimes import ProgramResult, SubprocessConfig

from debate.hold import hold_debate
from debate.seeds import SERVER_SEEDS, derive_seed
from debate.stops import end_of_stop
from debate.types import Completion, Problem, SampleRequest, Turn, TurnId
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.evaluation.grading import agreement, grade_debate
from debate_rl.inference.openai import restored
from debate_rl.sampling.load_problems import load_run_problems
from debate_rl.sft.exchange import INFO, turn_rewards
from envs import Environment
from envs.errors import shorten
from envs.registry import key_by_itself
from learner.advantages import turn_advantages
from learner.rows import token_advantages
from learner.token_streams import token_streams
from learner.types import group_indices, transitions_of
from rewards import score_debate, score_debates
from transcripts.codec import from_line, to_line
from transcripts.record import Record

if TYPE_CHECKING:
    from debate_rl.inference.decoding import TokenText


class DebateTasksConfig(vf.TasksetConfig):
    """Which problems are debated, and how."""

    recipe: str = "quickstart"
    """A recipe of ours by name, or a file."""
    settings: list[str] = []  # noqa: RUF012, pydantic copies it
    """Settings of the recipe to change, such as "debate.num_rounds=2"."""
    split: Literal["train", "held_out"] = "train"
    """The recipe's training problems (``env``), or its held-out problems."""


class DebateTask(vf.Task[vf.TaskData]):
    """A problem. It has no reward of its own, because the debate decides what a turn is worth."""


class DebateTaskset(vf.Taskset[DebateTask, DebateTasksConfig]):
    """The problems of a recipe."""

    def load(self) -> Iterator[DebateTask]:
        """Yield a task for each problem."""
        for problem in _problems_of(self.config)[1]:
            yield DebateTask(vf.TaskData(id=problem.id, name=problem.id, prompt=problem.question))


class DebateHarness(vf.Harness[vf.HarnessConfig]):
    """Sends one request to the model from this process, and starts no program."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> ProgramResult:
        """Send the messages of ``data`` and return when the reply is recorded."""
        body = {"model": ctx.model, "messages": [message_to_wire(one) for one in data.prompt or ()]}
        async with httpx.AsyncClient(timeout=None) as client:
            headers = {"Authorization": f"Bearer {secret}"}
            reply = await client.post(f"{endpoint}/chat/completions", json=body, headers=headers)
        return ProgramResult(0 if reply.is_success else 1, "", "" if reply.is_success else reply.text)


_ON_THIS_MACHINE = SubprocessConfig()


class DebateEnvConfig(vf.EnvConfig):
    """The model at each kind of seat (``debate.seats``). By default all are the model of the run."""

    learning: vf.AgentConfig = vf.AgentConfig(runtime=_ON_THIS_MACHINE)
    frozen: vf.AgentConfig = vf.AgentConfig(runtime=_ON_THIS_MACHINE)
    remote: vf.AgentConfig = vf.AgentConfig(runtime=_ON_THIS_MACHINE)


class DebateEnv(vf.Env[DebateEnvConfig]):
    """Holds the debates of a recipe with the agents of verifiers.

    Debate k of a problem in this process always has the same seed.
    """

    def __init__(self, config: DebateEnvConfig) -> None:
        super().__init__(config)
        self.debates = config_of(config.taskset)
        self.environment, problems = _problems_of(config.taskset)
        self.problems = {problem.id: problem for problem in problems}
        self._held: Counter[str] = Counter()

    async def setup(self, agents: vf.Agents) -> None:
        """Mark the agents at frozen and remote seats as not trained."""
        agents.frozen.trainable = agents.remote.trainable = False

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Hold, grade and reward one debate."""
        problem, config = self.problems[task.data.id], self.debates
        number = self._held[problem.id]
        self._held[problem.id] += 1
        policy = AgentsPolicy(agents)
        seed = derive_seed(config.seed, "verifiers", problem.id, number)
        debate = await hold_debate(
            problem, policy, config.debate, seed=seed, agreed=agreement(self.environment)
        )
        debate, grades = grade_debate(self.environment, debate)
        rewards = score_debate(debate, grades, config.rewards, key=key_by_itself)
        for turn in debate.turns:
            trace = policy.traces[turn.id]
            trace.info[INFO] = {"turn": list(turn.id), "ballot": turn.ballot}
            for name, value in turn_rewards(rewards, turn):
                trace.record_reward(name, value)
        record = Record(debate, 0, problem.id, grades, rewards)
        policy.traces[debate.turns[0].id].info[INFO]["record"] = json.loads(to_line(record))


class AgentsPolicy:
    """A ``debate.Policy`` that answers requests by runs of verifiers' agents, and keeps their ``traces``."""

    version = 0

    def __init__(self, agents: vf.Agents) -> None:
        self._agents = agents
        self.remote = self
        self.traces: dict[TurnId, vf.Trace] = {}

    async def update(self, weights: object, version: int) -> None:
        """Set the version. The server gets its weights from elsewhere."""
        self.version = version

    async def sample(self, request: SampleRequest) -> Completion:
        """Run the agent at the request's seat. RuntimeError if its run has an error."""
        sampling = {
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.seed % SERVER_SEEDS,
            **({"stop": list(request.stop)} if request.stop else {}),
            **({"top_p": request.top_p} if request.top_p < 1 else {}),
            **({"top_k": request.top_k} if request.top_k else {}),
        }
        agent = copy(getattr(self._agents, request.seat))
        own = agent.ctx.sampling.model_dump(exclude_unset=True)
        agent.ctx = replace(agent.ctx, sampling=vf.SamplingConfig(**own | sampling))
        agent.config = agent.config.model_copy(update={"sampling": agent.ctx.sampling})
        kinds = {"system": vf.SystemMessage, "user": vf.UserMessage, "assistant": vf.AssistantMessage}
        prompt = [kinds[one.role](content=one.content) for one in request.messages]
        trace = await agent.run(vf.Task(vf.TaskData(name=f"{request.debate}, {request.turn}", prompt=prompt)))
        if trace.has_error:
            raise RuntimeError(f"{request.debate}, {request.turn}: {trace.last_error}")
        self.traces[request.turn] = trace
        text = trace.assistant_messages[-1].content or ""
        end = end_of_stop(text, request.stop, 0)
        cut = trace.is_truncated and end is None
        text = text if cut else text[:end] if end is not None else restored(text, request.stop)
        return Completion((), (), (), text, "length" if cut else "stop", self.version)


def assign_advantages(
    episodes: Iterable[vf.Episode],
    config: Config,
    text_of: TokenText,
    *,
    means: MutableMapping[str, float] | None = None,
) -> None:
    """Set ``advantages`` on the nodes of the debates' traces, one number for each sampled token.

    The advantages equal those of ``debate train`` for the same debates. ``episodes`` must be complete groups,
    with the debates of each problem adjacent. ``text_of`` decodes the model's tokens; ``means`` keeps running
    means between calls. Traces without a turn, and turns without a signal, get zeros. ValueError for a trace
    without token ids, or whose tokens do not spell its text.
    """
    found = [_with_tokens(episode, text_of) for episode in episodes]
    debates = [record.debate for record, _ in found]
    correct = [record.correct for record, _ in found]
    names = [record.group for record, _ in found]
    scheme, settings = config.rewards.at_step(0), config.advantages.at_step(0)
    rewards, _ = score_debates(debates, correct, names, scheme, seed=config.seed, key=key_by_itself)
    transitions = transitions_of(debates, rewards, group_indices(names))
    parts = turn_advantages(transitions, scheme, settings, {} if means is None else means).turns
    for one, part in zip(transitions, parts, strict=True):
        if part is not None:
            streams = token_streams(one.turn, evaluation=settings.evaluation)
            ended = one.turn.completion.stop_reason == "stop"
            node = _sampled_node(found[one.debate][1][one.turn.id])
            node.advantages = token_advantages(streams, part, ended=ended).tolist()


def config_of(tasks: DebateTasksConfig) -> Config:
    """Return the recipe of a taskset. ValueError names a setting that verifiers' agents cannot use."""
    config = load_config(Config, tasks.recipe, tasks.settings)
    debate = config.debate
    unfit = {
        "debate.tools": debate.tools != "none",
        "debate.thinking_tokens": debate.thinking_tokens > 0,
        "debate.conversation": debate.conversation,
        "verifier.endpoint": config.verifier.endpoint is not None,
        "summarizer.endpoint": config.summarizer.endpoint is not None,
        "remote.endpoint": config.remote.endpoint is not None,
        "rewards.likelihood_weight": config.rewards.reads_likelihood,
        "rewards.labels": config.rewards.hides_any_label,
        "train.control": config.train.control_and_share[0] != "none",
    }
    for key, wrong in unfit.items():
        if wrong:
            raise ValueError(f"{key}: debates in verifiers cannot use this value; leave the key out")
    return config


def _problems_of(tasks: DebateTasksConfig) -> tuple[Environment, tuple[Problem, ...]]:
    loaded = load_run_problems(config_of(tasks))
    if tasks.split == "train":
        return loaded.environment, loaded.train
    return loaded.eval_environment or loaded.environment, loaded.held_out


def _with_tokens(episode: vf.Episode, text_of: TokenText) -> tuple[Record, Mapping[TurnId, vf.Trace]]:
    """Return an episode's record with the tokens of its traces, and the traces by turn."""
    traces: dict[TurnId, vf.Trace] = {}
    record = None
    for trace in episode.traces:
        info = trace.info.get(INFO)
        if (node := _sampled_node(trace)) is not None:
            node.advantages = [0.0] * sum(node.mask)
        if info is not None:
            traces[TurnId(*info["turn"])] = trace
            record = record or (from_line(json.dumps(info["record"]).encode()) if "record" in info else None)
    if record is None:
        raise ValueError(f"episode {episode.id}: no trace has the record of its debate")
    debate = record.debate
    turns = [
        with_values(turn, completion=_completion(turn, traces[turn.id], text_of))
        if debate.protocol.learns(turn.id.agent)
        else turn
        for turn in debate.turns
    ]
    return replace(record, debate=with_values(debate, turns=tuple(turns))), traces


def _completion(turn: Turn, trace: vf.Trace, text_of: TokenText) -> Completion:
    """Return a turn's completion with the token ids, log-probabilities and offsets of its trace."""
    node, text = _sampled_node(trace), turn.completion.text
    if node is None or not any(node.mask):
        raise ValueError(f"trace {trace.id}: has no token ids; use a client that returns them")
    branch = trace.branches[-1]
    ids, count = branch.token_ids, sum(node.mask)
    spelled, offsets = text_of.text_and_offsets(ids[-count:])
    start = 0 if text.startswith(spelled) else spelled.find(text)  # tokens may lack the stop string
    if start < 0:
        raise ValueError(
            f"trace {trace.id}: its tokens spell {shorten(spelled)}, its text is {shorten(text)}"
        )
    within = tuple(min(max(offset - start, 0), len(text)) for offset in offsets)
    tokens = tuple(ids[:-count]), tuple(ids[-count:]), tuple(node.logprobs)
    return replace(
        turn.completion, prompt_tokens=tokens[0], tokens=tokens[1], logprobs=tokens[2], offsets=within
    )


def _sampled_node(trace: vf.Trace) -> Any:
    """Return the node of the trace that the model sampled; None if there is none."""
    return next((node for node in reversed(trace.nodes) if node.sampled), None)
