"""verl as an engine: the settings it gets, the numbers that cross, and what is refused before it starts."""

from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from debate.types import TurnId
from debate_rl.backends.policy import ServicePolicy
from debate_rl.backends.service import ServiceError, refuse_unfit
from debate_rl.backends.verl_api import VerlService, errors_named, open_service, plan_lines, verl_words
from debate_rl.config import Config
from debate_rl.inference.remote import RemoteError
from learner import Row

ACTOR, REF = "actor_rollout_ref.actor", "actor_rollout_ref.ref"


def config_of(**changes):
    tables = {
        "debate": {"max_tokens": 40, "thinking_tokens": 60, "context_tokens": 400, "temperature": 1.0},
        "model": {"name_or_path": "some/model"},
        "engine": {"kind": "verl"},
    }
    for name, table in changes.items():
        tables[name] = tables.get(name, {}) | table
    return Config.model_validate(tables)


def words_of(**changes):
    return dict(word.split("=", 1) for word in verl_words(config_of(**changes)))


def test_a_recipe_as_verls_settings():
    words = words_of(
        learner={"betas": [0.8, 0.95], "micro_batch_tokens": 300},
        engine={"nodes": 4, "gpus_per_node": 8, "overrides": ["trainer.nnodes=5"]},
    )
    assert words["trainer.n_gpus_per_node"] == "8"
    assert words["trainer.nnodes"] == "5"  # the user's come last
    assert (words["data.max_prompt_length"], words["data.max_response_length"]) == ("300", "100")
    assert words[f"{ACTOR}.optim.betas"] == "[0.8,0.95]"
    assert words[f"{ACTOR}.optim.weight_decay"] == "0.0"
    assert words[f"{ACTOR}.ppo_max_token_len_per_gpu"] == "300"
    for part in (ACTOR, REF):
        assert words[f"++{part}.fsdp_config.mixed_precision.param_dtype"] == "bf16"
        assert words[f"++{part}.fsdp_config.mixed_precision.reduce_dtype"] == "fp32"
    single = words_of(learner={"compute": "float32"})
    assert single[f"++{REF}.fsdp_config.mixed_precision.param_dtype"] == "fp32"
    assert "actor_rollout_ref.model.lora.merge" not in words
    assert words_of(model={"lora_rank": 8})["actor_rollout_ref.model.lora.merge"] == "True"


def test_vllm_gets_half_of_a_shared_gpu_and_a_folder_is_absolute(tmp_path, monkeypatch):
    memory = "actor_rollout_ref.rollout.gpu_memory_utilization"
    assert words_of()[memory] == "0.5"
    assert words_of(model={"vllm": {"gpu_memory_utilization": 0.7}})[memory] == "0.7"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it's a=b").mkdir()
    path = words_of(model={"name_or_path": "it's a=b"})["actor_rollout_ref.model.path"]
    assert path == f"'{tmp_path}/it\\'s a=b'"
    assert words_of()["actor_rollout_ref.model.path"] == "'some/model'"


def test_a_folder_that_machines_do_not_share_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("debate_rl.backends.verl_api.SHARED_S", 0.0)
    service = VerlService(config_of(), [])
    service.__dict__["remote"] = Remote(2, 2, 2)
    service.save_pretrained(tmp_path)  # another strategy, with other files
    (tmp_path / "model_world_size_2_rank_0.pt").touch()
    with pytest.raises(ServiceError, match=r"2 shards, but 1 are not in .*all machines must share"):
        service.save_pretrained(tmp_path)
    (tmp_path / "model_world_size_2_rank_1.pt").touch()
    service.save_pretrained(tmp_path)


def test_shards_of_another_number_of_workers_are_refused(tmp_path):
    for rank in range(8):
        (tmp_path / f"model_world_size_8_rank_{rank}.pt").touch()
    service = VerlService(config_of(engine={"nodes": 2, "gpus_per_node": 4}), [])
    service.__dict__["remote"] = Remote(None)
    service.load_pretrained(tmp_path)
    other = VerlService(config_of(engine={"nodes": 1, "gpus_per_node": 4}), [])
    with pytest.raises(ValueError, match=r"engine\.gpus_per_node = 4: .* saved by 8 workers"):
        other.load_pretrained(tmp_path)


def test_several_machines_need_the_address_of_a_cluster(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ValueError, match=r"^engine\.nodes=2: set RAY_ADDRESS"):
        open_service(config_of(engine={"nodes": 2}))


def test_the_plan_has_the_commands_of_every_machine():
    assert not any("ray start" in line for line in plan_lines(config_of()))
    lines = plan_lines(config_of(engine={"nodes": 4, "python": "env/bin/python"}))
    assert "on the first machine: env/bin/ray start --head --port=6379" in lines
    assert "on the 3 other machines: env/bin/ray start --address=FIRST:6379" in lines


class Remote:
    """Keeps what is sent, and answers with the next of the given values."""

    def __init__(self, *answers):
        self.sent, self._answers = [], list(answers)

    def call(self, *words):
        self.sent.append(words)
        future = Future()
        answer = self._answers.pop(0)
        future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)
        return future


def service_with(*answers):
    service = VerlService(config_of(), ())
    service.remote = Remote(*answers)
    return service


MASK = np.array([False, False, True, True, False, True])
ROW = Row(np.arange(10, 16), MASK, *np.zeros((2, 6), np.float32), MASK.astype(np.int8), "p", 0, TurnId(0, 0))


def test_verls_log_probabilities_are_of_the_next_token():
    service = service_with([np.array([-1.0, -2.0, -3.0, -4.0, -5.0, 99.0])])
    [found] = service.logprobs([ROW], reference=True)
    assert found.tolist() == [0, -1, -2, -3, -4, -5]
    [(method, [sent], reference)] = service.remote.sent
    assert (method, sent["ids"].tolist(), sent["begin"], reference) == ("logprobs", [*range(10, 16)], 2, True)


def test_an_update_sends_the_derivatives_of_sampled_tokens_alone():
    service = service_with({"grad_norm": 0.5, "loss": 7.0})
    advantages = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0]])  # padded on the right
    metrics = service.update([ROW], torch.zeros(1, 7), advantages, lr=0.1)
    assert metrics == {"grad_norm": 0.5, "grad_norm_max": 0.5}
    [(_, _, [slopes], lr)] = service.remote.sent
    assert slopes.tolist() == [0, 0, -3, -4, 0, -6]
    assert lr == 0.1


@pytest.mark.parametrize("error", [RemoteError("ActorDiedError: worker 1\n\nits log"), ValueError("shapes")])
def test_an_error_of_verl_is_one_line_that_names_the_call(error):
    with pytest.raises(ServiceError, match=r"^verl failed \(update\): ") as caught:
        service_with(error).update([ROW], torch.zeros(1, 6), torch.ones(1, 6), lr=0.1)
    assert "\n" not in str(caught.value)
    with pytest.raises(ServiceError, match=r"^same$"), errors_named("x"):
        raise ServiceError("same")


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        ("ab</s>cd", ("ab</s>", "stop")),
        ("ab</s", ("ab</s", "length")),
        ("ab.", ("ab.", "stop")),  # ends with an end token
        ("", ("", "length")),
    ],
)
def test_a_reply_ends_with_its_first_stop_string(tokens, found):
    policy = object.__new__(ServicePolicy)
    policy._speech = SimpleNamespace(text=SimpleNamespace(decode=lambda ids: "".join(map(chr, ids))))
    sampling = {"stop": ["</s>", "</t>"], "stop_token_ids": [ord(".")]}
    ids = [*map(ord, tokens)]
    part = policy._part(ids, [-0.5] * len(ids), sampling)
    assert ("".join(map(chr, part.tokens)), part.ended) == found
    assert len(part.logprobs) == len(part.tokens)
    with pytest.raises(ServiceError, match="log-probabilities"):
        policy._part([*ids, 65], [-0.5] * len(ids), sampling)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"debate": {"context_tokens": None}}, "debate.context_tokens"),
        ({"debate": {"num_agents": 2, "seats": ["learning", "frozen"]}}, "debate.seats"),
        ({"debate": {"temperature": 0.7}}, "debate.temperature"),
        ({"model": {"lora_rank": 8, "lora_alpha": 0.5}}, "model.lora_alpha"),
        ({"model": {"dtype": "bfloat16"}}, "model.dtype"),
        ({"learner": {"entropy_bonus": 0.1}}, "learner.entropy_bonus"),
        ({"learner": {"compile": True}}, "learner.compile"),
    ],
)
def test_what_verl_cannot_do_is_refused_with_its_key(changes, key):
    refuse_unfit(config_of())
    with pytest.raises(ValueError, match=f"^{key}: "):
        refuse_unfit(config_of(**changes))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "make engines"),
        ("import sys; sys.exit('no verl')", "no verl"),
        ("print('0.5.0')", "has verl 0.5.0; install verl 0.9.1"),
    ],
)
def test_an_environment_without_the_right_verl_is_one_line(script, said, tmp_path):
    python = tmp_path / "python"
    if script is not None:
        python.write_text(f"#!/usr/bin/env python3\n{script}\n")
        python.chmod(0o755)
    with pytest.raises(ValueError, match=f"^engine.python=.*{said}"):
        open_service(config_of(engine={"python": str(python)}))
