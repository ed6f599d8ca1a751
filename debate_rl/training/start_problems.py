"""The problems of a run of debates, and every check before one begins or resumes."""

from __future__ import annotations

from debate_rl.config import Config
from debate_rl.engines import refuse_training
from debate_rl.problems import Problems, load_run_problems
from debate_rl.training.alarm_actions import refuse_blind_alarms
from debate_rl.training.epochs import with_epochs
from debate_rl.training.sampler import check_sampling
from debate_rl.training.start_checks import (
    check_labels,
    check_loss,
    check_prompts,
    check_streams,
    refuse_greedy,
    refuse_likely_only,
    refuse_modes,
    refuse_no_best,
    refuse_open_problems,
    refuse_replies,
    refuse_unlikely,
    refuse_unreachable,
    refuse_verdicts_as_truth,
)
from learner.losses import find_loss


def checked_problems(config: Config) -> tuple[Config, Problems]:
    """Return the configuration with the steps of its epochs, and the problems; all checked."""
    refuse_replies(config)
    refuse_training(config)
    refuse_greedy(config)
    refuse_likely_only(config)
    find_loss(config.learner.loss)  # refuses an unknown loss before the warm start
    data = load_run_problems(config)
    config = with_epochs(config, len(data.train))
    refuse_open_problems(config, data)
    refuse_verdicts_as_truth(config, data)
    refuse_unlikely(config, data)
    refuse_modes(config, data)
    check_labels(config, data)
    check_streams(config, data)
    check_prompts(config, data)
    check_loss(config)
    check_sampling(config, data)
    refuse_no_best(config, data)
    refuse_unreachable(config, data)
    refuse_blind_alarms(config, data)
    return config, data
