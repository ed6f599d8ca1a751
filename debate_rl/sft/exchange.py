"""Convert stored debates to traces of verifiers and logs of Inspect AI, and traces to replies."""

# pyright: reportMissingImports=false

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import UNSET

from debate.prompting.rebuilding import PromptUnknownError, held_debate
from debate.types import Completion, Message, Turn
from debate_rl.evaluation.scores import winner_of
from debate_rl.runs.folder import write_whole
from envs.errors import MissingPackageError
from rewards import STREAMS, Rewards
from transcripts import Record, write_step
from transcripts.codec import from_line, to_line

INFO = "debate"
"""The key of this project's values in the ``info`` of a trace."""


def turn_rewards(rewards: Rewards | None, turn: Turn) -> Iterator[tuple[str, float]]:
    """Yield the rewards of a turn by stream. Streams without a signal are left out."""
    agent, round_ = turn.id
    for name in STREAMS if rewards is not None else ():
        rows: Any = getattr(rewards, name)
        row = () if rows is UNSET else rows[agent]
        if round_ < len(row) and row[round_] is not None:
            yield name, float(row[round_])


def write_episodes(path: Path, records: Iterable[Record]) -> int:
    """Write debates as the episodes of a traces.jsonl of verifiers 0.4, and return their number."""
    lines = [json.dumps(_episode(record), ensure_ascii=False).encode() + b"\n" for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, b"".join(lines))
    return len(lines)


def _episode(record: Record) -> dict[str, Any]:
    problem, seed = record.debate.problem, record.debate.seed
    task = {"type": "DebateTask", "data": {"id": problem.id, "name": problem.id, "prompt": problem.question}}
    prompts, traces = _prompts(record), list[dict[str, Any]]()
    for turn in record.debate.turns:
        said, name = turn.completion, f"{problem.id}, agent {turn.id.agent}, round {turn.id.round}"
        seat = record.debate.protocol.seat(turn.id.agent)
        traces.append(
            {
                "version": 1,
                "id": f"{seed}-{record.step}-{turn.id.agent}-{turn.id.round}",
                "verifiers": {"version": "0.4.0"},
                "task": {"type": "Task", "data": {"name": name}},
                "agent": {"config": {}, "name": seat, "trainable": seat == "learning"},
                "nodes": _nodes(prompts.get(turn.id, ()), said),
                "ok": True,
                "rewards": {
                    key: {"score": value, "weight": 1.0} for key, value in turn_rewards(record.rewards, turn)
                },
                "info": {INFO: {"turn": list(turn.id), "ballot": turn.ballot}},
            }
        )
    traces[0]["info"][INFO]["record"] = json.loads(to_line(record))
    own = {"env": {"id": "debate-rl"}, "task": task, "ok": True, "traces": traces}
    return {"id": f"{seed}-{record.step}", **own}


def _prompts(record: Record) -> Mapping[Any, tuple[Message, ...]]:
    """Return the prompts of the turns that can be rebuilt exactly."""
    try:
        held = held_debate(record.debate)
        return {turn.id: held.prompt(turn.id).messages for turn in record.debate.turns}
    except PromptUnknownError:
        return {}


def _nodes(prompt: tuple[Message, ...], said: Completion) -> list[dict[str, Any]]:
    """Return the messages as a path. The last message of the prompt has all of the prompt's tokens."""
    nodes: list[dict[str, Any]] = [
        {"message": {"role": one.role, "content": one.content}, "parent": index - 1 if index else None}
        for index, one in enumerate(prompt)
    ]
    if nodes:
        nodes[-1] |= {"token_ids": said.prompt_tokens, "mask": [False] * len(said.prompt_tokens)}
    reply = {"message": {"role": "assistant", "content": said.text}, "sampled": True}
    tokens = {"token_ids": said.tokens, "mask": [True] * len(said.tokens), "logprobs": said.logprobs}
    return [*nodes, {**reply, **tokens, "parent": len(nodes) - 1 if nodes else None}]


def replies_in(episode: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the right replies of an episode of verifiers as rows to train on.

    A reply is right if the rewards of its trace sum to at least 1. In a debate, only the truth reward counts.
    """
    for trace in episode["traces"]:
        rewards = {
            name: one["score"] * one.get("weight", 1.0) for name, one in trace["rewards"].items() if one
        }
        total = rewards.get("truth", 0.0) if INFO in trace["info"] else sum(rewards.values())
        said = [node["message"] for node in trace["nodes"]]
        texts = all(isinstance(one.get("content"), str) for one in said)
        if total >= 1 and texts and said[-1]["role"] == "assistant" and not trace.get("errors"):
            asked = [{"role": one["role"], "content": one["content"]} for one in said[:-1]]
            yield {"messages": asked, "reply": said[-1]["content"], "source": "verifiers", "grade": "right"}


def store_debates(folder: Path, traces: Path) -> int:
    """Store the debates of a traces.jsonl of verifiers in a folder that ``debate inspect`` opens.

    Return their number. Raise ValueError for a line that is not an episode of a debate.
    """
    records: list[Record] = []
    with traces.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                infos = [trace["info"][INFO] for trace in json.loads(line)["traces"] if INFO in trace["info"]]
                (record,) = (info["record"] for info in infos if "record" in info)
                records.append(from_line(json.dumps(record).encode()))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{traces}, line {number}: not an episode of a debate: {error}") from error
    for step in sorted({record.step for record in records}):
        of_step = [record for record in records if record.step == step]
        write_step(folder / "transcripts", step, of_step, seal=True)
    return len(records)


def write_inspect_log(path: Path, records: Iterable[Record], *, model: str = "debaters") -> int:
    """Write debates as a log that ``inspect view`` opens, one sample per debate, and return their number.

    Needs the package inspect-ai. The scores are the winner's grade, and the fraction of right solutions.
    ``model``: the name that the log shows.
    """
    if find_spec("inspect_ai") is None:
        raise MissingPackageError("--format inspect: needs inspect-ai; pip install inspect-ai")
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput
    from inspect_ai.scorer import Score

    samples: list[Any] = []
    seen: dict[str, int] = {}
    for record in records:
        debate, problem = record.debate, record.debate.problem
        seen[problem.id] = seen.get(problem.id, 0) + 1
        messages: list[Any] = [ChatMessageUser(content=problem.question)]
        for turn in debate.turns:
            rewards = dict(turn_rewards(record.rewards, turn))
            shown = f"agent {turn.id.agent}, round {turn.id.round}{', ballot' if turn.ballot else ''}"
            text = f"[{shown}]\n\n{turn.completion.text}"
            messages.append(ChatMessageAssistant(content=text, model=model, metadata={"rewards": rewards}))
        scores: dict[str, Any] = {}
        winner = winner_of(debate, record.rewards) if record.rewards is not None else None
        if record.correct is not None and winner is not None:
            said = [grade for row in record.correct for grade in row if grade is not None]
            right = record.correct[winner.agent][winner.round]
            answer = debate.turn(winner).parsed.answer
            scores["winner"] = Score(value="C" if right is True else "I", answer=answer)
            scores["solutions"] = Score(value=sum(one is True for one in said) / max(len(said), 1))
        samples.append(
            EvalSample(
                id=problem.id,
                epoch=seen[problem.id],
                input=problem.question,
                target=problem.answer or "",
                messages=messages,
                output=ModelOutput.from_content(model, debate.turn(winner).completion.text if winner else ""),
                scores=scores or None,
                metadata={"step": record.step, "seed": str(debate.seed), "level": problem.level},
            )
        )
    spec = EvalSpec(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        task="debates",
        dataset=EvalDataset(samples=len(seen)),
        model=model,
        config=EvalConfig(epochs=max(seen.values(), default=1)),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(EvalLog(status="success", eval=spec, samples=samples), str(path))
    return len(samples)
