"""Write the log-probabilities of a row: a server's after a run, its exported adapter's, and the base's.

In a process of its own, because the SDK leaves its connections open. Arguments: the recipe, the run, the
export, and the file to write.
"""

import sys
from pathlib import Path

import numpy as np
from transformers import AutoModelForCausalLM

from debate_rl.backends.tinker_api import open_service, probe_row
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from learner.update.batches import collate
from learner.update.forward import action_logprobs

recipe, run, exported, out = map(Path, sys.argv[1:])
config = load_config(Config, recipe, [f"run.dir={run}"])
service, tokenizer, _ = open_service(config)
service.load_pretrained(run / "checkpoints" / "step_000003" / "model")
row = probe_row(tokenizer("1 2 3 4 5 6 7 8", add_special_tokens=False)["input_ids"])


def logprobs_of(name: object) -> np.ndarray:
    model = AutoModelForCausalLM.from_pretrained(name)
    return action_logprobs(model, collate([row]))[0].detach().numpy()[0]


base = logprobs_of(config.model.name_or_path)
np.savez(out, served=service.logprobs([row])[0], exported=logprobs_of(exported), base=base)
