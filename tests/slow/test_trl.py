"""TRL's trainer on the debates of a recipe: its loss, gradient and weights are those of our learner."""

import copy

import pytest

from debate_rl.config import Config
from debate_rl.models import load_model
from learner import LearnerConfig
from learner.update.learner import Learner

from .test_verl import RECIPE

pytest.importorskip("trl", reason="no TRL; make engines")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("loss", ["dapo", "grpo"])
def test_two_steps_are_those_of_our_learner(start_model, tmp_path, loss):
    from debate_rl.trl_trainer import DebateTrainer, trl_arguments

    config = Config.model_validate(
        RECIPE
        | {
            "engine": {"kind": "local"},
            "model": {"name_or_path": str(start_model), "chat": True, "device": "cpu"},
            "learner": {"loss": loss, "lr": 1e-3, "adam_eps": 1e-5, "warmup_steps": 0, "compute": "float32"},
            "train": {"steps": 2, "batch_size": 2, "group_size": 3},
        }
    )
    model, tokenizer = load_model(config.model, seed=0)
    twin, rows = copy.deepcopy(model), []
    where = {"use_cpu": True, "bf16": False, "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1}
    where |= {"lr_scheduler_type": "constant", "adam_epsilon": 1e-5, "gradient_checkpointing": False}
    trainer = DebateTrainer(config, model, tokenizer, trl_arguments(config, str(tmp_path / "out"), **where))
    held = trainer.rows_of
    trainer.rows_of = lambda step: rows.append(held(step)) or rows[-1]
    trainer.train()
    logged = [one for one in trainer.state.log_history if "grad_norm" in one]
    learner = Learner(twin, LearnerConfig.model_validate(config.learner.model_dump()))
    assert len(rows) == len(logged) == 2
    for own, theirs in zip(rows, logged, strict=True):
        found = learner.step(own)
        assert len(own) > 8
        assert theirs["grad_norm"] == pytest.approx(found["grad_norm"], rel=1e-4)
        assert theirs["loss"] == pytest.approx(found["loss"], abs=1e-5)
    pairs = zip(trainer.accelerator.unwrap_model(trainer.model).parameters(), twin.parameters(), strict=True)
    assert max(float((one - other).abs().max()) for one, other in pairs) < 1e-5


def test_what_trl_cannot_follow_is_named(tmp_path):
    from debate_rl.trl_trainer import trl_arguments

    local = RECIPE | {"engine": {"kind": "local"}, "model": {"name_or_path": "none"}}
    with pytest.raises(ValueError, match=r"^learner\.beta: TRL's trainer"):
        trl_arguments(
            Config.model_validate(local | {"learner": {"loss": "dapo", "beta": 0.1}}), str(tmp_path)
        )
    with pytest.raises(ValueError, match=r"^learner\.loss: "):
        trl_arguments(Config.model_validate(local | {"learner": {"loss": "gspo"}}), str(tmp_path))
