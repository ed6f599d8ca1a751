"""Training through a vLLM server that runs already: one that answers as it is told, and a real one."""

import asyncio
import json
import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest

from debate.types import Message, SampleRequest, TurnId
from debate_rl.config import Config
from debate_rl.engines import open_policy
from debate_rl.inference.vllm_server import VLLMServer

from .conftest import BY_VLLM, steps_of, wait_until, write_recipe
from .model_server import Answer, Asked, serving

SAID = [5, 6]


class FakeServer:
    """Answers two tokens; ``held`` keeps completions waiting, ``refuses`` is the answer to an adapter."""

    def __init__(self) -> None:
        self.url, self.names, self.asked, self.raw = "", ["base"], [], False
        self.refuses: tuple[int, str] | None = None
        self.held = threading.Event()
        self.held.set()

    def __call__(self, asked: Asked) -> Answer:
        path, body = asked.path.removeprefix("/v1/"), asked.body
        if path == "models":
            cards = [{"id": name, "root": name, "max_model_len": 300} for name in self.names]
            return Answer({"object": "list", "data": cards})
        self.asked.append((path, body))
        if path == "unload_lora_adapter":
            self.names.remove(body["lora_name"])
            return Answer(b"Success")
        if path == "completions":
            return self.completion(body)
        if self.refuses is not None:
            return Answer({"error": {"message": self.refuses[1]}}, self.refuses[0])
        self.names.append(body["lora_name"])
        return Answer(f"Success: LoRA adapter '{body['lora_name']}' added successfully.".encode())

    def completion(self, body: dict) -> Answer:
        self.held.wait(20)
        if body["model"] not in self.names:
            return Answer({"error": {"message": f"The model `{body['model']}` does not exist."}}, 404)
        heat = 1.0 if self.raw else body["temperature"]
        likeliest = {name: -number / heat for number, name in enumerate("abcde")}
        sampled = {"z": -9.0 * body["temperature"]}  # it is told too, likely or not
        odds = {"token_logprobs": [-0.5, -1.5], "tokens": ["a", "b"], "top_logprobs": [sampled | likeliest]}
        return Answer({"choices": [{"token_ids": SAID, "finish_reason": "length", "logprobs": odds}]})


@pytest.fixture
def server():
    fake = FakeServer()
    with serving(fake) as found:
        fake.url = found.url
        yield fake
        fake.held.set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_tiny):
    folder = tmp_path_factory.mktemp("served")
    for one in make_tiny():
        one.save_pretrained(folder / "base")
    for name in ("first", "second"):
        (folder / name).mkdir()
        (folder / name / "adapter_config.json").touch()
    return folder


def policy_at(server, folder, **settings):
    server.names[0] = str(folder / "base")
    return VLLMServer(
        folder / "base", base_url=server.url, dtype="float32", timeout_s=10, **{"retries": 0} | settings
    )


def request(seed=7):
    return SampleRequest((Message("user", "hello"),), 0.7, 2, (), seed, "d", TurnId(0, 0))


def adapters(server):
    return [(path, body["lora_name"][-2:]) for path, body in server.asked if path != "completions"]


def test_a_server_is_asked_for_tokens_as_vllm_in_this_process_is(server, folder):
    policy = policy_at(server, folder)
    assert policy.context_tokens == 300
    reply = asyncio.run(policy.sample(request()))
    assert (reply.tokens, reply.logprobs, reply.stop_reason) == ((5, 6), (-0.5, -1.5), "length")
    assert reply.prompt_tokens == policy.encode(request().messages)
    path, body = server.asked[-1]
    assert path == "completions"
    assert body == {
        "model": str(folder / "base"),
        "prompt": list(reply.prompt_tokens),
        **{"return_token_ids": True, "temperature": 0.7, "top_p": 1.0, "top_k": 0, "min_p": 0.0},
        **{"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0},
        **{"max_tokens": 2, "seed": 7, "stop": [], "logprobs": 0},
        "stop_token_ids": sorted(policy._speech.ends),
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
    }
    state = policy.state()
    assert (state.busy, state.steps) == (False, 1)


def test_requests_end_with_the_adapter_they_began_with_and_it_is_unloaded_behind_the_last(server, folder):
    policy = policy_at(server, folder)

    async def over_an_update():
        await policy.update(folder / "first", 1)
        server.held.clear()
        before = asyncio.ensure_future(policy.sample(request()))
        while server.asked[-1][0] != "completions":
            await asyncio.sleep(0.01)
        await policy.update(folder / "second", 2)
        kept = adapters(server)
        after = asyncio.ensure_future(policy.sample(request()))
        server.held.set()
        versions = [(await one).policy_version for one in (before, after)]
        await asyncio.gather(*policy._closing)
        return kept, versions

    kept, versions = asyncio.run(over_an_update())
    assert kept == [("load_lora_adapter", "-1"), ("load_lora_adapter", "-2")]
    assert versions == [1, 2]
    assert adapters(server) == [*kept, ("unload_lora_adapter", "-1")]
    assert [body["model"][-2:] for path, body in server.asked if path == "completions"][-2:] == ["-1", "-2"]


def test_frozen_seats_are_answered_by_the_base(server, folder):
    policy = policy_at(server, folder)
    asyncio.run(policy.update(folder / "first", 1))
    for seat, version in (("frozen", 0), ("learning", 1)):
        reply = asyncio.run(policy.sample(replace(request(), seat=seat)))
        assert reply.policy_version == version
    models = [body["model"] for path, body in server.asked if path == "completions"][-2:]
    assert models == [str(folder / "base"), policy._now.adapter]


def test_a_server_that_was_started_anew_is_given_the_adapter_once_more(server, folder):
    policy = policy_at(server, folder)
    asyncio.run(policy.update(folder / "first", 1))
    del server.names[1:]

    async def many():
        return await asyncio.gather(*(policy.sample(request(seed)) for seed in range(8)))

    assert [reply.tokens for reply in asyncio.run(many())] == [(5, 6)] * 8
    assert adapters(server) == [("load_lora_adapter", "-1")] * 2


@pytest.mark.slow
def test_an_adapter_that_is_played_is_where_servers_elsewhere_read_it(server, folder, tmp_path):
    server.names[0] = str(folder / "base")
    (tmp_path / "mine").mkdir()
    facts = {"base_model_name_or_path": str(folder / "base"), "r": 4}
    (tmp_path / "mine/adapter_config.json").write_text(json.dumps(facts))
    (tmp_path / "shared").mkdir()
    vllm = {"servers": [server.url], "adapter_folder": str(tmp_path / "shared")}
    model = {"policy": "vllm", "name_or_path": str(tmp_path / "mine"), "dtype": "float32", "vllm": vllm}
    policy = open_policy(Config.model_validate({"env": {"kind": "pair_sum"}, "model": model}), None)
    try:
        assert asyncio.run(policy.sample(request())).tokens == (5, 6)
        [given] = [Path(body["lora_path"]) for path, body in server.asked if path == "load_lora_adapter"]
        assert given.parents[1] == tmp_path / "shared"
        assert json.loads((given / "adapter_config.json").read_text()) == facts
    finally:
        policy.close()
    assert list((tmp_path / "shared").iterdir()) == []
    assert (tmp_path / "mine/adapter_config.json").exists()


def test_odds_of_temperature_1_are_refused_at_the_start(server, folder):
    server.raw = True
    with pytest.raises(ValueError, match="start it with --logprobs-mode processed_logprobs"):
        policy_at(server, folder)


def test_another_model_is_refused_at_the_start(server, folder):
    server.names[0] = "meta/other"
    with pytest.raises(ValueError, match=r"serves meta/other; start it with vllm serve .*/base, or set"):
        VLLMServer(folder / "base", base_url=server.url, dtype="float32", retries=0)


@pytest.mark.parametrize(
    ("refusal", "remedy"),
    [
        ((404, "Not Found"), "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment"),
        ((404, "No adapter found for /x"), "set model.vllm.adapter_folder to a folder that it can read"),
        ((500, "LoRA rank 32 is greater than max_lora_rank 16"), "--max-lora-rank of model.lora_rank"),
    ],
)
def test_an_adapter_that_is_not_taken_has_a_remedy(refusal, remedy, server, folder):
    policy = policy_at(server, folder)
    server.refuses = refusal
    with pytest.raises(ValueError, match=remedy):
        asyncio.run(policy.update(folder / "first", 1))
    assert policy.version == 0
    with pytest.raises(ValueError, match="only takes adapters"):
        asyncio.run(policy.update(folder / "base", 1))


SERVE = (
    "-m vllm.entrypoints.openai.api_server --model base --enable-lora --max-loras 2 --max-lora-rank 8 "
    "--logprobs-mode processed_logprobs --dtype float32 --enforce-eager --no-enable-chunked-prefill "
    "--max-num-batched-tokens 8192"
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def real_server(bench_python, tmp_path, base_model):
    """Yield the URL of a vLLM server for the base model, and its process."""
    port = free_port()
    words = [*SERVE.split(), "--port", port]
    with (
        bench_python.start(*words, cwd=tmp_path, VLLM_ALLOW_RUNTIME_LORA_UPDATING="True") as process,
        ThreadPoolExecutor(2) as readers,
    ):
        for stream in (process.stdout, process.stderr):
            readers.submit(stream.read)  # or it would wait for somebody to read
        url = f"http://127.0.0.1:{port}/v1"
        try:
            wait_until(lambda: answers(f"{url}/models"), process)
            yield url, process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its engine has a process of its own


def answers(url):
    try:
        with urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.slow
def test_an_adapter_is_trained_through_a_running_server(bench_python, real_server, tmp_path):
    """64 debates at once, with lookahead 0 and 1, until the server is killed."""
    url, process = real_server
    model = {"name_or_path": "base", "lora_rank": 4, "server": {"concurrency": 256}}
    model["vllm"] = {"servers": [url], "enforce_eager": False}
    sizes = {"debate": {"num_rounds": 1}, "train": {"batch_size": 16}}
    write_recipe(tmp_path / "recipe.toml", BY_VLLM, sizes, {"model": model})
    train = ("train", "recipe.toml", "run.dir=run", "run.allow_changes=['train']")
    done = bench_python.debate("train", "recipe.toml", "run.dir=no", "model.lora_rank=16", cwd=tmp_path)
    assert done.returncode == 2
    assert "LoRA rank 16 is greater than max_lora_rank 8" in done.stderr.splitlines()[-1]
    done = bench_python.debate(*train, "train.steps=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = ("-m", "debate_rl.commands.main", *train, "train.steps=50", "train.async_level=1")
    with bench_python.start(*command, cwd=tmp_path) as training:
        wait_until(lambda: len(steps_of(tmp_path / "run")) >= 3, training)
        os.killpg(process.pid, signal.SIGKILL)
        _, err = training.communicate()
    assert training.returncode == 2
    assert url in err.splitlines()[-1]
    steps = steps_of(tmp_path / "run")
    saved = max(
        int(path.name.removeprefix("step_")) for path in (tmp_path / "run/checkpoints").glob("step_*")
    )
    assert saved == len(steps) >= 3
    for row in steps:
        assert row["mismatch_max"] < 3e-5 or row["staleness_max"] > 0  # older weights have other odds
        assert row["canary/logprob_difference"] < 1e-5
        assert row["staleness_max"] <= 1
