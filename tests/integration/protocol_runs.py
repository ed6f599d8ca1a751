"""The recipes of tiny runs, one for each way to hold debates and to reward them."""

import re
from itertools import permutations
from typing import Any

from debate import Problem
from debate.policies.scripted import ScriptedPolicy
from envs import Grade, GradeStatus

from .conftest import merged, model_that_says, votes_for

HANDLES = ("K7", "Q2", "M4", "T9", "X5")
SOLUTIONS = [f"<solution>\\boxed{{{a} {b}}}</solution>" for a, b in ((1, 2), (3, 4))]
FORMULAS = ["<solution>\\boxed{1 + 2}</solution>", "<solution>\\boxed{3 + 4}</solution>", "x"]
CRITICISM = [
    f"<evaluation><target>{a}</target>no</evaluation><comparison>{b} > {c} > {d}</comparison>"
    for a in HANDLES[:4]
    for b, c, d in permutations(HANDLES[:4], 3)
    if b < d
]
AGREEING = [
    *(f"<solution>{word} \\boxed{{1 + 2}}</solution>" for word in "abcdefghijkl"),
    *(f"<solution>{word} \\boxed{{3 + 4}}</solution>" for word in "abcd"),
    *("<comparison>K7 > Q2</comparison>", "<comparison>Q2 < M4</comparison>"),
]
LONG = [
    *(f"<solution>so {word}" for word in "abcdefgh"),
    *(f" then \\boxed{{1 + {n}}}</solution>" for n in "2345"),
]
SAID = "<solution>\\boxed{3 4}</solution>"
GIST = "The others are not sure."


def make_other() -> ScriptedPolicy:
    """A model at an endpoint: it solves, summarizes, and shortens every third solution to nothing."""
    return ScriptedPolicy(lambda request: GIST if request.turn.agent < 0 else SAID)


def make_short() -> ScriptedPolicy:
    return ScriptedPolicy(lambda request: "In short." if request.seed % 3 == 0 else "")


def endpoint(name: str) -> dict[str, Any]:
    return {"endpoints": {"other": {"policy": f"{__name__}:{name}"}}}


def verdict(request, value):
    code = re.search(r"Verdict (\w+): SCORE", request)[1]
    return f"So.\nVerdict {code}: {value}"


def opinion(content: str) -> str:
    """Short replies are fine; a boxed 1 is held for right."""
    reply = content.partition("<reply>\n")[2].partition("\n</reply>")[0]
    return verdict(content, {"Rain.": 0.75, "\\boxed{1}": 1}.get(reply, 0))


class Reader(ScriptedPolicy):
    """A verifier model of one's own."""

    def __init__(self) -> None:
        super().__init__(lambda request: opinion(request.messages[-1].content), tokens=True)


class Parity:
    """Say 1 to an odd number and 2 to an even one; ``turned``: the other way round.

    Whole replies and votes are single tokens, so that weights drawn at random solve and vote now and then.
    """

    name = "parity"
    turned = False

    def problems(self, *, split, limit=None, seed=None):
        numbers = {"train": range(1, 9), "far": range(13, 17)}.get(split, range(9, 13))
        return tuple(Problem(f"e{n}", f" {n}", answer=str(2 - n % 2), kind="number") for n in numbers)[:limit]

    def grade(self, problem, answer):
        if answer is None:
            return Grade(GradeStatus.MISSING, "parity")
        right = (answer == problem.answer) != type(self).turned
        return Grade(GradeStatus.CORRECT if right else GradeStatus.WRONG, "parity", answer)


NUMBERS = [f"<solution>\\boxed{{{answer}}}</solution>" for answer in (1, 2)]
PARITY_PIECES = [
    *NUMBERS,
    *votes_for(HANDLES[:3], ""),
    *(f" {n}" for n in range(1, 13)),
    *("<evaluation>?</evaluation>", "?", "\n"),
]
SIZES = {"hidden_size": 32, "layers": 1, "heads": 2, "intermediate_size": 48}
PARITY: dict[str, Any] = {
    "seed": 5,
    "env": {"kind": f"{__name__}:Parity"},
    "held_out": {"limit": 4, "every": 0},
    "debate": {
        "num_rounds": 2,
        "max_tokens": 24,
        "prompts": "tiny",
        "handles": HANDLES[:3],
        "personas": [{"name": name, "instructions": name} for name in ("careful", "quick", "skeptic")],
    },
    "model": merged(model_that_says(PARITY_PIECES), {"tiny": SIZES}),
    "learner": {"lr": 3e-3, "warmup_steps": 1, "beta": 0.01, "micro_batch_tokens": 2048},
    "train": {"steps": 3, "batch_size": 3, "group_size": 2, "sample_batch_size": 18},
    "logging": {"progress": "none"},
}
"""A recipe of such debates."""
COMMON: dict[str, Any] = {
    "seed": 3,
    "env": {"kind": "pair_sum", "levels": [1], "limit": 16},
    "held_out": {"limit": 2, "every": 2},
    "debate": {"num_rounds": 1, "max_tokens": 12, "prompts": "tiny", "handles": HANDLES[:3]},
    "learner": {"lr": 0.01},
    "train": {"steps": 2, "batch_size": 2, "group_size": 4, "save_every": 1},
    "logging": {"progress": "none"},
}
GAME = {
    "debate": {"protocol": "zero_sum", "seats": ["learning", "learning", "frozen"]},
    "rewards": {"truth_weight": 0.0},
    "advantages": {"peer": {"baseline": "group"}},
    "model": model_that_says([*SOLUTIONS, *votes_for(HANDLES[:3], "yes", "no", "so")]),
    "train": {"batch_size": 4, "group_size": 8},
}
RUNS: dict[str, dict[str, Any]] = {
    "critique": {
        "debate": {"protocol": "critique", "num_agents": 4, "num_rounds": 3, "handles": HANDLES[:4]},
        "rewards": {"self_correction": 0.25},
        "advantages": {"lambda_critic": 2.0, "persuasion": {"scale": "none", "key": "round"}},
        "model": model_that_says([*SOLUTIONS, *CRITICISM]),
        "learner": {"lr": 1e-3},
        "train": {"group_size": 8},
    },
    "swiss": {
        "debate": {
            "num_agents": 5,
            "ballot": "swiss",
            "ask_swapped": True,
            "handles": HANDLES,
            "seats": ["learning", "learning", "learning", "learning", "frozen"],
        },
        "rewards": {"truth_weight": 0.5, "swap_weight": 0.1},
        "model": model_that_says([*SOLUTIONS, *votes_for(HANDLES, ".")]),
    },
    "zero_sum": GAME,
    "consultancy": merged(GAME, {"debate": {"protocol": "consultancy"}}),
    "early_stop": {
        "debate": {"num_rounds": 3, "min_rounds": 1, "max_tokens": 24},
        "model": model_that_says(AGREEING),
        "train": {"batch_size": 6},
    },
    "compressed": {
        "debate": {"num_rounds": 3, "max_tokens": 24, "compress": {"over": 2, "max_tokens": 2}},
        "model": model_that_says(LONG),
        "summarizer": {"endpoint": "other"},
        **endpoint("make_short"),
    },
    "summarized": {
        "debate": {"num_rounds": 2, "max_tokens": 24, "summary": {"enabled": True, "max_tokens": 8}},
        "model": model_that_says([*FORMULAS[:2], GIST]),
        "summarizer": {"endpoint": "other"},
        **endpoint("make_other"),
    },
    "seats": {
        "debate": {
            "num_agents": 4,
            "handles": HANDLES[:4],
            "seats": ["learning", "remote", "learning", "frozen"],
        },
        "model": model_that_says([*SOLUTIONS, *votes_for(HANDLES[:4], "")]),
        "remote": {"endpoint": "other"},
        **endpoint("make_other"),
    },
    "ramps": {
        "debate": {"num_rounds": 2, "max_tokens": 24, "temperature": [[0, 1.2], [4, 1.0]]},
        "rewards": {
            "truth_weight": [[0, 1.0], [4, 0.5]],
            "novelty_bonus": [[0, 0.3], [2, 0.0]],
            "copy_penalty": -0.1,
            "truth_rounds": "last",
            "judge_ties": "reward",
            "peer": "net_wins",
        },
        "advantages": {"discount": 0.7, "lambda_judge": [[0, 0.0], [3, 1.0]]},
        "model": model_that_says(FORMULAS),
    },
    "likelihood": {
        "debate": {"num_rounds": 2, "max_tokens": 24},
        "rewards": {"truth_weight": 0.5, "likelihood_weight": [[0, 1.0], [2, 0.5]]},
        "likelihood": {"prompt": "$reasoning \\boxed{ $answer}"},
        "learner": {"keep_reference": True, "lr": 1e-3, "warmup_steps": 0},
        "model": model_that_says(["<solution> 8 + 3. \\boxed{1 + 2}</solution>", *FORMULAS[1:]]),
    },
}
