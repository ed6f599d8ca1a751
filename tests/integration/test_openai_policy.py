"""The policy over a server, against a real one in a thread that answers as it is told."""

import asyncio
import gzip
import json
import threading
import time
import tracemalloc
import zlib

import pytest

from debate.policy import token_counts
from debate.types import Message, SampleRequest, TurnId
from debate_rl.inference.openai import GO_ON, OpenAIPolicy
from debate_rl.inference.server import LARGEST_REPLY, ServerError, key_for
from debate_rl.inference.tools import ToolPolicy

from .conftest import python, write_recipe
from .model_server import Answer, chat, serving

SECRET = "sk-very-secret-0123"


def request(text="hello", **rest):
    fields = {"temperature": 1.0, "max_tokens": 12, "stop": ("</solution>",), "seed": 2**40 + 5} | rest
    return SampleRequest(messages=(Message("user", text),), debate="a", turn=TurnId(0, 0), **fields)


def policy_at(server, **settings):
    return OpenAIPolicy(server.url, "m", **{"first_wait_s": 0.01, "timeout_s": 10, **settings})


def ask(policy, *requests):
    async def all_at_once():
        return await asyncio.gather(*(policy.sample(one) for one in requests))

    return asyncio.run(all_at_once())


def answered(body, *, status=200, **settings):
    """Return what one request gets from a server that always answers so, and what the server was asked."""
    asked = settings.pop("request", request())
    with serving(lambda _: Answer(body, status)) as server:
        return ask(policy_at(server, **settings), asked)[0], server.asked


def test_a_request_says_what_it_wants(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    found, [asked] = answered(chat("<solution>4</solution>"), request=request("2 + 2?", temperature=0.5))
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {SECRET}"
    assert asked.body["messages"] == [{"role": "user", "content": "2 + 2?"}]
    wanted = {"model": "m", "temperature": 0.5, "max_tokens": 12, "seed": 5, "stop": ["</solution>"]}
    assert {key: asked.body[key] for key in wanted} == wanted
    assert (found.text, found.stop_reason, found.policy_version) == ("<solution>4</solution>", "stop", 0)
    assert (found.prompt_tokens, found.tokens, found.logprobs) == ((), (), ())
    assert token_counts(found) == (11, 3)


@pytest.mark.parametrize(
    ("base_url", "own", "sent"),
    [
        ("https://api.openai.com/v1", None, True),
        ("https://api.openai.com.evil.org/v1", None, False),
        ("http://api.openai.com/v1", None, False),
        ("https://gpu.example:8000/v1", "https://gpu.example:8000/v1", True),
        ("http://127.0.0.1:8000/v1", "https://gpu.example/v1", True),
        ("http://localhost.evil.org/v1", None, False),
        ("http://b:8000/v1", "http://a:8000/v1, http://b:8000/v1,", True),
        ("http://c:8000/v1", "http://a:8000/v1, http://b:8000/v1", False),
        ("https://api.openai.com/v1", " ,", True),
    ],
)
def test_the_key_goes_to_its_own_hosts_alone(base_url, own, sent, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", own or "")
    assert key_for(base_url) == (SECRET if sent else None)


def test_plain_completions_get_one_text():
    body = {"choices": [{"text": "<solution>4", "finish_reason": "stop"}]}
    found, [asked] = answered(body, chat=False)
    assert asked.path == "/v1/completions"
    assert "hello" in asked.body["prompt"]
    assert "messages" not in asked.body
    assert found.text == "<solution>4</solution>"
    assert token_counts(found) == (0, 0)


@pytest.mark.parametrize(
    ("choice", "text", "reason"),
    [
        ({"text": "<solution>4", "finish": "stop"}, "<solution>4</solution>", "stop"),
        ({"text": "<solution>4", "finish": "length"}, "<solution>4", "length"),
        ({"text": "<solution>4</solution>"}, "<solution>4</solution>", "stop"),
        ({"text": "I pass"}, "I pass", "stop"),
        ({"text": "<solution>4", "stop_reason": None}, "<solution>4", "stop"),  # vLLM: the model ended it
        ({"text": "<solution>4", "stop_reason": "</solution>"}, "<solution>4</solution>", "stop"),
        ({"text": "<solution>4</solution>", "stop_reason": "</solution>"}, "<solution>4</solution>", "stop"),
        ({"text": "4 END", "stop_reason": "rm -rf"}, "4 END", "stop"),  # no string that was asked for
    ],
)
def test_the_stop_string_is_in_the_text(choice, text, reason):
    found, _ = answered(chat(choice.pop("text"), **choice))
    assert (found.text, found.stop_reason) == (text, reason)


def vllm_reply(pieces, *, ids=None, logprobs=None, **more):
    """Return what vLLM answers: ids, and a log-probability and the bytes of each token."""
    logprobs = logprobs or [-0.5] * len(pieces)
    content = [
        {"token": piece, "bytes": list(piece.encode()), "logprob": logprob}
        for piece, logprob in zip(pieces, logprobs, strict=True)
    ]
    text = "".join(pieces).removesuffix("<end>")
    ids = ids or list(range(5, 5 + len(pieces)))
    reply = chat(text, token_ids=ids, logprobs={"content": content}, stop_reason=None, **more)
    return reply | {"prompt_token_ids": [1, 2, 3]}


def test_tokens_are_kept_where_they_are_told():
    found, [asked] = answered(vllm_reply(["<solution>", "é4", "<end>"], logprobs=[-0.1, -2.0, 0.0]))
    assert asked.body["return_token_ids"] is True
    assert asked.body["top_k"] == -1
    assert (found.prompt_tokens, found.tokens, found.logprobs) == ((1, 2, 3), (5, 6, 7), (-0.1, -2.0, 0.0))
    assert (found.text, found.offsets) == ("<solution>é4", (0, 10, 12))


@pytest.mark.parametrize("more", [{"temperature": 0.7}, {"top_p": 0.9, "top_k": 20}])
def test_log_probabilities_of_another_distribution_are_left_out(more):
    """A server reports those among all tokens, at temperature 1."""
    found, [asked] = answered(vllm_reply(["a", "b"]), request=request(**more))
    assert asked.body.items() >= more.items()
    assert (found.tokens, found.logprobs) == ((5, 6), ())


def without_top_k(asked):
    if "top_k" in asked.body:
        return Answer({"error": {"message": "Unrecognized request argument: top_k"}}, 400)
    return Answer(chat("fine"))


def test_top_k_is_refused_where_the_server_does_not_know_it():
    with serving(without_top_k) as server:
        policy = policy_at(server)
        assert ask(policy, request(top_p=0.9))[0].text == "fine"
        assert server.asked[-1].body["top_p"] == 0.9
        with pytest.raises(ValueError, match=r"^debate.top_k = 20: this server refuses"):
            ask(policy, request(top_k=20))


def test_thinking_is_kept_and_no_stop_string_cuts_it():
    text = "I could write </solution> now.</think><solution>4</solution> and so on"
    found, [asked] = answered(chat(text), request=request(thinking_tokens=30), thinking=True)
    assert "stop" not in asked.body
    assert asked.body["max_tokens"] == 42
    assert asked.body["chat_template_kwargs"] == {"enable_thinking": True}
    assert found.text == "I could write </solution> now.</think><solution>4</solution>"
    apart = chat("<solution>4</solution>", message={"reasoning": "two and two </think>"})
    found, _ = answered(apart, request=request(thinking_tokens=30))
    assert found.text == "<think>\ntwo and two \n</think>\n\n<solution>4</solution>"


def test_thinking_that_was_cut_off_stays_private():
    body = chat("Perhaps <solution>5</solution>", finish="length")
    found, _ = answered(body, request=request(thinking_tokens=30))
    assert found.text.startswith("<think>")
    assert found.stop_reason == "length"


def test_a_server_without_extras_is_asked_without_them_from_then_on():
    with serving(without_top_k) as server:
        policy = policy_at(server)
        assert [one.text for one in ask(policy, request(), request())] == ["fine", "fine"]
        before = len(server.asked)
        ask(policy, request())
        assert len(server.asked) == before + 1
        kept = {"model", "messages", "max_tokens", "temperature", "seed", "stop"}
        assert set(server.asked[-1].body) == kept


@pytest.mark.parametrize("status", [429, 500, 503, 408])
def test_a_busy_server_is_asked_again(status):
    answers = iter([Answer(None, status), Answer(b"<h1>later</h1>", status), Answer(chat("done"))])
    with serving(lambda _: next(answers)) as server:
        assert ask(policy_at(server), request())[0].text == "done"
        assert len(server.asked) == 3
        assert server.asked[0].body == server.asked[2].body


def test_retry_after_is_waited_for(monkeypatch):
    waits, sleep = [], asyncio.sleep

    async def at_once(seconds):
        waits.append(seconds)
        await sleep(0)

    answers = iter([Answer(None, 429, {"retry-after": "7.5"}), Answer(chat("done"))])
    with serving(lambda _: next(answers)) as server:
        monkeypatch.setattr(asyncio, "sleep", at_once)
        ask(policy_at(server), request())
    assert 7.5 in waits


def failure(body, status=200, **settings):
    with pytest.raises(ServerError) as error:
        answered(body, status=status, **settings)
    message = str(error.value)
    assert "\n" not in message
    assert "http://127.0.0.1:" in message
    assert SECRET not in message
    return message.partition("/v1/chat/completions: ")[2]


def test_failures_are_one_line_with_url_and_status(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert failure({"error": {"message": "no\nmodel"}}, 404) == "HTTP 404 Not Found: no model"
    assert failure({"error": f"bad key {SECRET}"}, 401) == "HTTP 401 Unauthorized: bad key ***"
    assert failure({"detail": "x"}, 400) == 'HTTP 400 Bad Request: {"detail": "x"}'
    assert failure(b"", 503, retries=2) == "HTTP 503 Service Unavailable (3 tries)"
    long = failure(b"\x1b[2Jhi" + b"x" * 9999, 500, retries=0)
    assert long.startswith("HTTP 500 Internal Server Error: [2Jhi")
    assert len(long) < 400
    assert failure(b"", 302) == "HTTP 302 Found"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "HTTP 200, but the answer is not JSON"),
        (b"[" * 100_000, "HTTP 200, but the answer is not JSON"),
        ([], "HTTP 200, but the answer is not a JSON object"),
        ({"choices": []}, "HTTP 200, but the answer has no choices"),
        ({"choices": [{}]}, "HTTP 200, but the answer has no text in its first choice"),
        (b" " * (LARGEST_REPLY + 1), f"the answer has more than {LARGEST_REPLY} bytes"),
    ],
)
def test_answers_that_are_none_are_told(body, message):
    assert failure(body) == message


def packed_reply(body, coding):
    with serving(lambda _: Answer(body, headers={"content-encoding": coding})) as server:
        [completion] = ask(policy_at(server, retries=0), request())
        assert server.asked[0].headers["accept-encoding"] == "identity"
    return completion.text


@pytest.mark.parametrize(("pack", "coding"), [(gzip.compress, "gzip"), (zlib.compress, "Deflate")])
def test_an_answer_that_is_packed_once_is_unpacked(pack, coding):
    assert packed_reply(pack(json.dumps(chat("hello")).encode()), coding) == "hello"


def test_an_answer_that_unpacks_to_more_than_can_be_is_refused_within_bounds():
    bomb = gzip.compress(bytes(8 * LARGEST_REPLY), 9)
    assert len(bomb) < LARGEST_REPLY // 100
    tracemalloc.start()
    with pytest.raises(ServerError, match=f"the answer has more than {LARGEST_REPLY} bytes"):
        packed_reply(bomb, "gzip")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * LARGEST_REPLY
    with pytest.raises(ServerError, match="the answer has the unknown encoding 'gzip, gzip'"):
        packed_reply(gzip.compress(bomb), "gzip, gzip")
    with pytest.raises(ServerError, match="the answer cannot be unpacked: "):
        packed_reply(b"{}", "gzip")


def test_a_server_that_hangs_is_given_up():
    never = threading.Event()
    with serving(lambda _: Answer(chat("late"), wait=never)) as server:
        with pytest.raises(ServerError, match=r"no answer in 0\.2 s \(2 tries\)"):
            ask(policy_at(server, timeout_s=0.2, retries=1), request())
        never.set()


def test_no_more_requests_at_a_time_than_allowed():
    lock, live, most = threading.Lock(), [0], [0]

    def slow(_):
        with lock:
            live[0] += 1
            most[0] = max(most[0], live[0])
        time.sleep(0.05)
        with lock:
            live[0] -= 1
        return Answer(chat("x"))

    with serving(slow) as server:
        policy = policy_at(server, concurrency=2)
        ask(policy, *[request(seed=seed) for seed in range(6)])
        ask(policy, *[request(seed=seed) for seed in range(3)])  # another event loop
    assert most[0] == 2


@pytest.mark.parametrize("url", ["localhost:8000", "http://a b/", "http://[::"])
def test_what_is_no_base_url_is_refused(url):
    with pytest.raises(ValueError, match=r"^base_url: "):
        OpenAIPolicy(url, "m")


def test_it_cannot_be_trained():
    with pytest.raises(ValueError, match=r"'m' at http://localhost/v1 cannot be trained"):
        asyncio.run(OpenAIPolicy("http://localhost/v1", "m").update(None, 1))


RECIPE = {"debate": {"num_rounds": 1, "max_tokens": 30}, "model": {"policy": "openai", "name_or_path": "m"}}
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "transformers", "peft", "safetensors", "vllm"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""


@pytest.fixture
def recipe(tmp_path):
    """The path of a recipe that lacks the server's address."""
    return write_recipe(tmp_path / "served.toml", RECIPE)


PLAY = "solve play served.toml 2+2? --answer 4"
EVAL = "eval served.toml env.kind=pair_sum env.limit=5 held_out.limit=1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "seen", "requests"),
    [(PLAY, "✓", 6), (EVAL, "debate winner accuracy", 12)],  # 3 agents, a round and the ballot
)
def test_no_torch_is_needed(recipe, words, seen, requests):
    with serving(lambda _: Answer(chat("<solution>2 + 2 = 4. \\boxed{4}"))) as server:
        code = f"{WITHOUT}\nfrom debate_rl.commands.main import run; run()"
        done = python("-c", code, *words.split(), f"model.server.base_url={server.url}", cwd=recipe.parent)
        assert done.returncode == 0, done.stderr
        assert seen in done.stdout
        assert len(server.asked) == requests


def test_what_a_recipe_lacks_is_one_line(recipe, debate_command, monkeypatch):
    monkeypatch.chdir(recipe.parent)
    code, _, err = debate_command("solve play", recipe, "2 + 2?")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("debate: model.policy=openai: needs model.server.base_url")
    code, _, err = debate_command(
        "train", recipe, "env.kind=pair_sum", "env.limit=5", "model.server.base_url=http://localhost/v1"
    )
    [_, line] = err.splitlines()  # what train was about to do, and why not
    assert code == 2
    assert line.startswith(
        "debate: model.policy=openai: this model can play and be evaluated, but not trained"
    )
    assert not (recipe.parent / "runs").exists()


PROGRAM = "<solution>\n```python\nprint(6 * 7)\n```\n"
SHOWN = PROGRAM + "```output\n42\n```\n"
TOLD = {"role": "user", "content": GO_ON}


def with_programs(answer, programs, **settings):
    """Return a reply with programs from a server, and what the server was asked."""
    with serving(answer) as server:
        policy = ToolPolicy(policy_at(server, **settings), programs)
        return [ask(policy, request("6 * 7?", max_tokens=200))[0] for _ in range(2)], server.asked


def test_a_chat_goes_on_behind_a_program(programs):
    """The first reply shows that the server says what stopped it: from then on it stops at the fence."""

    def answer(asked):
        fence = "```\n" in asked.body["stop"]
        if asked.body["messages"][-1]["role"] == "assistant":
            return Answer(chat("It is \\boxed{42}.</solution>", stop_reason="</solution>"))
        more = {"stop_reason": "```\n"} if fence else {"stop_reason": "</solution>"}
        return Answer(chat(PROGRAM + ("" if fence else "```output\n41\n```\n</solution>"), **more))

    replies, asked = with_programs(answer, programs)
    for reply in replies:
        assert reply.text == SHOWN + "It is \\boxed{42}.</solution>"
        assert [call.output.of(reply.text) for call in reply.calls] == ["42\n"]
        assert token_counts(reply)[1] == 3 + 3 + 6
    assert [one.body["stop"] for one in asked[:3]] == [["</solution>"], *[["</solution>", "```\n"]] * 2]
    assert asked[1].body["messages"][-1] == {"role": "assistant", "content": SHOWN}
    assert (asked[1].body["continue_final_message"], asked[1].body["add_generation_prompt"]) == (True, False)


def test_a_server_without_extras_is_asked_to_go_on(programs):
    def answer(asked):
        if "continue_final_message" in asked.body or "return_token_ids" in asked.body:
            return Answer({"error": {"message": "unknown field"}}, status=400)
        if asked.body["messages"][-1] == TOLD:
            return Answer(chat("It is \\boxed{42}."))  # the stop string is cut off
        return Answer(chat(PROGRAM + "```output\n41\n```\nand so on"))

    replies, asked = with_programs(answer, programs)
    for reply in replies:
        assert reply.text == SHOWN + "It is \\boxed{42}.</solution>"
    assert all("```\n" not in one.body["stop"] for one in asked)
    assert asked[-1].body["messages"][-2:] == [{"role": "assistant", "content": SHOWN}, TOLD]


def test_plain_completions_go_on_behind_a_program(programs):
    def answer(asked):
        text = "so 42</solution>" if asked.body["prompt"].endswith(SHOWN) else PROGRAM
        choice = {"text": text, "finish_reason": "stop", "stop_reason": None}
        return Answer({"choices": [choice]})

    replies, _ = with_programs(answer, programs, chat=False)
    assert {reply.text for reply in replies} == {SHOWN + "so 42</solution>"}
