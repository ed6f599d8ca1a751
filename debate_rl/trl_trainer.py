"""A trainer of TRL (GRPOTrainer) that learns from debates. TRL has optimizer, schedule, logs and checkpoints.

One step of TRL is one step of debates. TRL averages the loss over the tokens of a step (``loss_type =
"dapo"``). Our loss "grpo" averages over each row first, so advantages are weighted to give the same gradient.
Written against TRL 1.16.
"""

# pyright: basic, reportMissingImports=false, reportIncompatibleMethodOverride=false, reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from datasets import Dataset
from torch.nn.utils.rnn import pad_sequence
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from debate_rl.config import Config
from debate_rl.engines import local_settings
from debate_rl.inference.local import LocalPolicy
from debate_rl.rollouts.worker import Clock, RolloutWorker
from debate_rl.sampling.draw_problems import Sampler
from debate_rl.sampling.load_problems import load_run_problems
from learner import Row, make_rows, turn_advantages


def trl_arguments(config: Config, folder: str, **changes: Any) -> GRPOConfig:
    """Return TRL's arguments for a recipe; ``changes`` are further fields, such as the learning rate.

    ValueError names a setting that TRL's trainer cannot use.
    """
    learner, debate, train = config.learner, config.debate, config.train
    unfit = {
        "learner.loss": learner.loss not in ("grpo", "dapo"),
        "learner.normalise": learner.normalise != "joint",
        "learner.beta": learner.beta > 0 or bool(learner.beta_judge),
        "learner.entropy_bonus": learner.entropy_bonus > 0,
        "learner.tis_cap": learner.caps_weights,
        "learner.minibatches": learner.minibatches * learner.epochs != 1,
        "rewards.likelihood_weight": config.rewards.reads_likelihood,
        "debate.seats": bool(set(debate.seats) - {"learning"}),
        "debate.personas": any(one.temperature != 1 for one in debate.agent_personas),
    }
    for key, wrong in unfit.items():
        if wrong:
            raise ValueError(f"{key}: TRL's trainer cannot use this value; leave the key out")
    micro = changes.pop("per_device_train_batch_size", 8)
    rows = train.batch_size * train.group_size * debate.num_agents * (debate.num_rounds + 1)
    world = changes.pop("world_size", 1)
    fixed = {
        "loss_type": "dapo",
        "beta": 0.0,
        "temperature": 1.0,
        "num_iterations": 1,
        "num_generations": micro,
    }
    sizes = {"per_device_train_batch_size": micro, "gradient_accumulation_steps": -(-rows // (micro * world))}
    own = {"learning_rate": learner.lr, "max_grad_norm": learner.max_grad_norm, "weight_decay": 0.0}
    own |= {"adam_beta1": learner.betas[0], "adam_beta2": learner.betas[1], "report_to": "none"}
    return GRPOConfig(output_dir=folder, max_steps=train.steps, **own | changes, **fixed, **sizes)


class DebateTrainer(GRPOTrainer):
    """Process 0 holds the debates of each step; every process learns from its share of the rows."""

    def __init__(self, config: Config, model: Any, tokenizer: Any, args: GRPOConfig, **more: Any) -> None:
        self.debates, self.means, self._cut = config, {}, []
        self._data = load_run_problems(config)
        prompts = Dataset.from_list([{"prompt": "?"}] * 4096)  # TRL requires prompts; debates have their own
        super().__init__(model, lambda **_: [0.0], args, prompts, processing_class=tokenizer, **more)
        policy = LocalPolicy(self.accelerator.unwrap_model(self.model), tokenizer, **local_settings(config))
        self._worker = RolloutWorker(config, self._data, policy)
        self._sampler = Sampler(config, self._data)

    def rows_of(self, step: int) -> list[Row]:
        """Hold a step's debates with the current weights, and return their rows with advantages."""
        now = self.debates.at_step(step)
        self._worker.policy.version = step
        played = self._worker.roll_out(step, self._sampler.draw, self.means, Clock())
        self._sampler.remember(step, played.last_grades())
        turns = played.transitions()
        advantages = turn_advantages(turns, now.rewards, now.advantages, self.means).turns
        return make_rows(turns, advantages, now.advantages)

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        accumulated = self.args.gradient_accumulation_steps
        if self.model.training and self._step % accumulated == 0:
            shared: list[Any] = [None]
            if self.accelerator.is_main_process:
                self.model.eval()
                shared = [self.rows_of(self.state.global_step)]
                self.model.train()
            if self.accelerator.num_processes > 1:
                torch.distributed.broadcast_object_list(shared, src=0)
            self._cut = self._batches(shared[0])
        return self._cut[self._step % accumulated]

    def _batches(self, rows: list[Row]) -> list[dict[str, torch.Tensor]]:
        """Return this process's micro-batches of the rows, filled up with rows without weight."""
        micro, processes = self.args.per_device_train_batch_size, self.accelerator.num_processes
        begins = [int(np.argmax(row.action_mask)) for row in rows]
        prompts = [row.input_ids[:begin] for row, begin in zip(rows, begins, strict=True)]
        replies = [slice(begin, None) for begin in begins]
        total = sum(int(row.action_mask.sum()) for row in rows)
        weights = [1.0] * len(rows)
        if self.debates.learner.loss == "grpo":
            weights = [total / (len(rows) * int(row.action_mask.sum())) for row in rows]
        signals = [
            row.advantages * row.action_mask * np.float32(one) for row, one in zip(rows, weights, strict=True)
        ]

        def right(values: list[Any], of_reply: bool = True, fill: int = 0) -> torch.Tensor:
            cut = [one[part] for one, part in zip(values, replies, strict=True)] if of_reply else values
            return pad_sequence(
                [torch.from_numpy(one.copy()) for one in cut], batch_first=True, padding_value=fill
            )

        def left(values: list[Any], fill: int = 0) -> torch.Tensor:
            return right([one[::-1] for one in values], of_reply=False, fill=fill).flip(1)

        end: Any = self._tokenizer.pad_token_id
        batch = {
            "prompt_ids": left(prompts, end),
            "prompt_mask": left([np.ones_like(one) for one in prompts]),
            "completion_ids": right([row.input_ids for row in rows], fill=end),
            "completion_mask": right([np.ones_like(row.input_ids) for row in rows]),
            "tool_mask": right([row.action_mask.astype(np.int64) for row in rows]),
            "advantages": right(signals),
        }
        missing = self.args.gradient_accumulation_steps * micro * processes - len(rows)
        for key, value in batch.items():
            empty = value[:1] * (key not in ("tool_mask", "advantages"))
            own = torch.cat([value, empty.expand(missing, -1)])[self.accelerator.process_index :: processes]
            batch[key] = own.to(self.accelerator.device)
        items = torch.tensor(float(total), device=self.accelerator.device)
        size = len(batch["prompt_ids"])
        return [
            {key: value[start : start + micro] for key, value in batch.items()}
            | {"num_items_in_batch": items}
            for start in range(0, size, micro)
        ]
