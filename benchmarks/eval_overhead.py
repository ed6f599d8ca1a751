"""What ``debate eval`` costs beside the model: holding, grading, keeping and scoring, on one thread.

OMP_NUM_THREADS=1 .venv/bin/python benchmarks/eval_overhead.py --json overhead.json

The scripted policy's answers cost next to nothing, so that what is measured is overhead;
``share_of_quickstart_model`` is the share of the time in which the quick-start's model does not sample.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from report import Figure, parser, report

from debate import Completion, SampleRequest
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.engines import make_policy
from debate_rl.evaluation.play import EvalPlan, Played, play
from debate_rl.evaluation.scores import scores
from debate_rl.inference.local import LocalPolicy
from debate_rl.sampling.load_problems import load_held_out
from envs.answers.keys import key_of


def main() -> None:
    args = parser("What an evaluation costs beside the model.").parse_args()
    config = load_config(Config, "quickstart")
    environment, problems = load_held_out(config)
    plan = EvalPlan(problems, environment, config.debate, (0,))
    figures = [*scripted(plan), *with_model(plan, config)]
    report("overhead of debate eval; CPU time, one thread", figures, args.json)


def scripted(plan: EvalPlan) -> list[Figure]:
    """Return the milliseconds for each debate of holding and keeping, reading again, and the figures."""
    answers = {p.id: Answers(str(p.answer), ("1 2",)) for p in plan.problems}
    texts = plan.protocol.prompts
    policy = scripted_debaters(answers, solve=(0.5, 0.5, 0.5), judge=0.9, prompts=texts, tokens=True)
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        played = play(plan, policy, Path(folder))
        held = time.process_time()
        play(plan, policy, Path(folder))
        read = time.process_time()
        scores(played, key_of(plan.environment))
        scored = time.process_time()
    debates = debates_of(played)
    spans = {"hold_and_keep_ms": held - started, "read_again_ms": read - held, "figures_ms": scored - read}
    return [Figure(name, 1000 * span / debates, "ms a debate", debates) for name, span in spans.items()]


def debates_of(played: Played) -> int:
    return len(played.debates) + sum(map(len, played.opening))


class Timed(LocalPolicy):
    """A local policy that knows how long it sampled."""

    seconds = 0.0

    def sample_all(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Answer many requests, and add the time it took."""
        started = time.process_time()
        answered = super().sample_all(requests)
        self.seconds += time.process_time() - started
        return answered


def with_model(plan: EvalPlan, config: Config) -> list[Figure]:
    """Return the share of an examination's time in which the quick-start's model does not sample."""
    model, tokenizer, _ = make_policy(config)
    policy = Timed(model, tokenizer, chat=config.model.chat, batch_size=config.train.sample_batch_size)
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        played = play(replace(plan, problems=plan.problems[:100]), policy, Path(folder))
        scores(played, key_of(plan.environment))
        whole = time.process_time() - started
    return [Figure("share_of_quickstart_model", 1 - policy.seconds / whole, "share", debates_of(played))]


if __name__ == "__main__":
    main()
