"""A verifier model as a scripted policy: what is asked, once, what is kept, and what ends a run."""

import asyncio
import json
import re
import subprocess
import sys
import threading
import warnings

import pytest

from debate import Problem
from debate.policies.scripted import ScriptedPolicy
from envs.errors import DataError, DataWarning
from envs.rubrics.model import MOST_FAILED, Asking, VerifierError, VerifierModel
from envs.rubrics.verdicts import Line, Stated, VerdictCache

PROBLEM = Problem("1", "Write a haiku.", kind="rubric")


def code_of(request):
    return re.search(r"Verdict (\w+): (?:SCORE|LABEL)", request.messages[-1].content)[1]


def says(value, before="Fine."):
    """A script that gives every reply this verdict."""
    return lambda request: f"{before}\nVerdict {code_of(request)}: {value}"


class Model:
    """A verifier model over a script, with the requests it got."""

    def __init__(self, script, *, cache=None, **asking):
        self.policy = ScriptedPolicy(script, tokens=True)
        self.opened = 0
        asking = Asking(max_tokens=4000, **asking)
        self.model = VerifierModel(self.open, "m", asking=asking, cache=VerdictCache(cache))

    def open(self):
        self.opened += 1
        return self.policy

    def score(self, reply="five seven five", rubric="17 syllables."):
        return self.model.score(PROBLEM, reply, rubric=rubric).result(20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.model.close()


def test_a_score_comes_back_with_its_cost():
    with Model(says("0.75")) as one:
        assert one.score() == (0.75, "")
        tally = one.model.take_tally()
        request = one.policy.requests[0]
    assert (request.temperature, request.max_tokens, request.stop) == (0.0, 4000, ())
    prompt = sum(len(message.content) for message in request.messages)
    said = len("Fine.\nVerdict ABCDEF: 0.75") + 1
    wanted = {"verdicts": 1, "requests": 1, "prompt_tokens": prompt, "tokens": said}
    assert {name: tally[name] for name in wanted} == wanted


def test_the_same_content_is_asked_once_and_another_anew(tmp_path):
    path = tmp_path / "deep" / "verdicts.jsonl"
    with Model(says("0.5"), cache=path) as one:
        assert [one.score(), one.score(), one.score("other").score] == [(0.5, ""), (0.5, ""), 0.5]
        tally = one.model.take_tally()
        assert (tally["requests"], tally["cached"], tally["verdicts"]) == (2, 1, 3)
    with Model(says("1"), cache=path) as again:  # another run, with the same file
        assert again.score() == (0.5, "")
        assert again.opened == 0
        assert again.score(rubric="Rhymes.") == (1.0, "")
    with Model(says("1"), cache=path, temperature=0.5) as warm:
        assert warm.score() == (1.0, "")  # asked in another way
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["value"] for line in lines] == ["0.5", "0.5", "1", "1"]
    assert all(line["model"] == "m" and line["said"].startswith("Fine.") for line in lines)


def test_the_same_content_at_the_same_time_is_one_request():
    release = threading.Event()

    with Model(lambda request: release.wait(5) and says("1")(request)) as one:
        futures = [one.model.score(PROBLEM, "same", rubric="x") for _ in range(9)]
        release.set()
        assert {future.result(20).score for future in futures} == {1.0}
        assert len(one.policy.requests) == 1


def test_several_samples_are_a_mean_and_nonsense_is_left_out():
    values = ["1", "0.5", "7"]
    script = lambda request: says(values[request.turn.round])(request)  # noqa: E731
    with Model(script, samples=3, temperature=1.0) as one:
        assert one.score() == (0.75, "")
        assert len({request.seed for request in one.policy.requests}) == 3


def fails(_):
    raise ConnectionError("the server\nis gone")


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        (lambda _: "no idea", "no_verdict"),
        (lambda r: says("1")(r) + says("0")(r).removeprefix("Fine."), "several"),
        (says("2"), "out_of_range"),
        (lambda _: "x" * 5000, "truncated"),
        (fails, "failed"),
    ],
)
def test_nonsense_is_counted_and_kept_and_only_a_failure_is_asked_again(script, fault, tmp_path):
    path = tmp_path / "verdicts.jsonl"
    with Model(script, cache=path) as one:
        assert one.score() == (None, fault)
        assert one.model.take_tally()[fault] == 1
    with Model(says("1"), cache=path) as again:
        assert again.score() == ((1.0, "") if fault == "failed" else (None, fault))


def test_a_reply_that_never_comes_is_a_timeout():
    class Silent(ScriptedPolicy):
        async def sample(self, request):
            await asyncio.sleep(60)

    model = VerifierModel(lambda: Silent({}), "m", asking=Asking(timeout_s=0.05))
    assert model.score(PROBLEM, "x", rubric="y").result(20) == (None, "timeout")
    with pytest.raises(VerifierError, match=r"m does not answer: no answer in 0.05 s"):
        model.check()
    model.close()


def test_a_model_that_is_gone_ends_it_with_one_line():
    with Model(fails, concurrency=4) as one:
        futures = [one.model.score(PROBLEM, str(n), rubric="y") for n in range(2 * MOST_FAILED)]
        errors = [str(error) for future in futures if (error := future.exception(20))]
        faults = [future.result().fault for future in futures if not future.exception()]
        assert (len(errors), faults) == (MOST_FAILED, ["failed"] * MOST_FAILED)
        assert re.search(r"gave no answer to 24 requests in a row.*the server\\nis gone", errors[0])


def test_a_model_that_cannot_be_opened_or_asked_is_told_at_the_start():
    def missing():
        raise FileNotFoundError(2, "No such file", "weights")

    model = VerifierModel(missing, "m")
    with pytest.raises(VerifierError, match=r"verifier.endpoint: m"):
        model.check()
    model.close()
    with Model(lambda _: "whatever") as fine:
        fine.model.check()
        fine.model.check()
        assert len(fine.policy.requests) == 1


def test_too_many_without_a_verdict_end_a_run():
    with Model(says("1")) as one:
        one.model.refuse_silent({"several": 7})  # fewer than 8
        one.model.refuse_silent({"several": 8, "verdicts": 8})
        with pytest.raises(VerifierError) as caught:
            one.model.refuse_silent({"several": 8, "timeout": 1, "verdicts": 8})
    assert str(caught.value) == (
        "verifier.endpoint: m gave no verdict on 9 of 17 replies (1 timeout, 8 several), a fraction above 0.5"
    )


def test_a_label_is_asked_for_in_the_same_way():
    with Model(says("Arithmetic.")) as one:
        labels = {"misread": "a number of the question is wrong", "arithmetic": "a sum is wrong"}
        found = one.model.label(PROBLEM, "2 + 2 = 5", question="What went wrong?", labels=labels).result(20)
    assert found == Stated("arithmetic")


def test_a_torn_line_is_passed_over_and_what_follows_is_whole(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    with VerdictCache(path) as cache:
        cache.put(Line("a", "m", "1"))
    with path.open("ab") as file:
        file.write(b'{"key":"b","model":"m","val')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with VerdictCache(path) as cache:
            assert (cache.get("a"), cache.get("b")) == (Stated("1"), None)
            cache.put(Line("c", "m", None, "several"))
    with VerdictCache(path) as cache:
        assert cache.get("c") == Stated(None, "several")


@pytest.mark.parametrize(
    "line", ["[1]", '{"key": 1, "model": "m"}', "\x00\xff", '{"key":"a","model":"m"}', "[" * 9000]
)
def test_a_file_of_something_else_is_refused(line, tmp_path):
    path = tmp_path / "file"
    path.write_text(line + "\n" + line + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        with pytest.raises(DataError, match=r"verifier.cache=.*file: is"):
            VerdictCache(path)


WRITER = """
import sys
from pathlib import Path
from envs.rubrics.verdicts import Line, VerdictCache
with VerdictCache(Path(sys.argv[1])) as cache:
    for n in range(300):
        cache.put(Line(f"{sys.argv[2]}-{n}", "m", "0.5", said="x" * 3000))
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    with VerdictCache(path) as cache:
        assert all(cache.get(f"{name}-{n}") == Stated("0.5") for name in "ab" for n in range(300))
