"""Prints how many traces of debates get other advantages in verifiers than in our rows, as JSON.

Runs in the environment of verifiers, without torch. Agents are scripted, and every character is a token.
"""

import json

import verifiers.v1 as vf
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, TraceTask

from debate import run_debates
from debate.policies import Answers, scripted_debaters
from debate_rl.config import Config
from debate_rl.evaluation.grading import grade_debate
from debate_rl.sampling.load_problems import load_run_problems
from debate_rl.verifiers_env import INFO, assign_advantages
from envs.registry import key_by_itself
from learner.advantages import turn_advantages
from learner.rows import make_rows
from learner.types import group_indices, transitions_of
from rewards import score_debates
from transcripts.codec import to_line
from transcripts.record import Record

PROBLEMS, EACH = 3, 4
RECIPE = {
    "env": {"kind": "pair_sum", "limit": PROBLEMS},
    "held_out": {"limit": 0},
    "debate": {
        "num_rounds": 2,
        "max_tokens": 200,
        "prompts": "tiny",
        "seats": ["learning", "learning", "frozen"],
    },
    "rewards": {"form_bonus": 0.1},
    "model": {"name_or_path": "none"},
}


class Characters:
    """Decodes tokens that are code points; the end token adds nothing."""

    def text_and_offsets(self, ids):
        return "".join(chr(one) for one in ids if one < 0x110000), tuple(range(len(ids)))


def main():
    config = Config.model_validate(RECIPE)
    data = load_run_problems(config)
    answers = {one.id: Answers(one.answer, ("1 2", "3")) for one in data.train}
    policy = scripted_debaters(answers, malformed=0.2, prompts="tiny", tokens=True)
    policy.freeze = lambda: None
    many = [one for one in data.train for _ in range(EACH)]
    held = [grade_debate(data.environment, one) for one in run_debates(many, policy, config.debate, seed=5)]
    debates, correct = zip(*held, strict=True)
    names = [one.problem.id for one in debates]
    rewards, _ = score_debates(debates, correct, names, config.rewards, seed=config.seed, key=key_by_itself)
    transitions = transitions_of(debates, rewards, group_indices(names))
    parts = turn_advantages(transitions, config.rewards, config.advantages, {}).turns
    rows = {(row.debate, row.turn): row for row in make_rows(transitions, parts, config.advantages)}
    parts_of = zip(debates, [0] * len(names), names, correct, rewards, strict=True)
    episodes = [episode_of(Record(*one)) for one in parts_of]
    assign_advantages(episodes, config, Characters())
    checked = differ = signals = 0
    for number, (debate, episode) in enumerate(zip(debates, episodes, strict=True)):
        for turn, trace in zip(debate.turns, episode.traces, strict=True):
            row, given = rows.get((number, turn.id)), trace.nodes[-1].advantages
            count = len(turn.completion.tokens)
            wanted = [0.0] * count if row is None else row.advantages[-count:].tolist()
            checked, differ, signals = checked + 1, differ + (given != wanted), signals + any(wanted)
    print(json.dumps({"traces": checked, "differ": differ, "signals": signals}))


def episode_of(record):
    """Return the episode that verifiers would have recorded."""
    task = vf.TaskData(id=record.group, prompt="")
    traces = []
    for turn in record.debate.turns:
        prompt, said = turn.completion.prompt_tokens, turn.completion
        trace = vf.Trace(
            task=TraceTask(type="Task", data=task),
            agent=AgentInfo(config=vf.AgentConfig()),
            nodes=[
                MessageNode(
                    message=vf.UserMessage(content="?"), token_ids=prompt, mask=[False] * len(prompt)
                ),
                MessageNode(
                    parent=0,
                    message=vf.AssistantMessage(content=said.text),
                    sampled=True,
                    token_ids=said.tokens,
                    mask=[True] * len(said.tokens),
                    logprobs=said.logprobs,
                ),
            ],
        )
        trace.info[INFO] = {"turn": list(turn.id), "ballot": turn.ballot}
        traces.append(trace)
    traces[0].info[INFO]["record"] = json.loads(to_line(record))
    return vf.Episode(task=TraceTask(type="DebateTask", data=task), traces=traces)


if __name__ == "__main__":
    main()
