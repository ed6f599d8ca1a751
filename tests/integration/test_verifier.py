import json
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

import debate_rl
from debate_rl.config import Config
from debate_rl.config.recipes import ConfigError, load_config
from debate_rl.inference.server import Server
from debate_rl.metrics.step_log import read_metrics
from debate_rl.runs.checkpoint import write_model
from debate_rl.training.loop import finish_step, train, train_step
from debate_rl.training.open_or_resume import open_training
from envs.rubrics.model import VerifierError
from transcripts import read_records

from .conftest import merged, model_that_says
from .model_server import Answer, chat, serving
from .protocol_runs import Reader, opinion, verdict

RECIPE = Path(debate_rl.__file__).parents[1] / "configs/writing/qwen3_4b.toml"
TEXTS = [text + " " * n for text in ("Rain.", "\\boxed{1}", "\\boxed{2}", "Verdict: 1") for n in range(20)]
PIECES = [f"<solution>{text}</solution>" for text in TEXTS]
SPEAKER = merged(model_that_says(PIECES), {"tiny": {"context_tokens": 4096}})
SMALL = {
    "run": {},
    "debate": {"num_agents": 4, "num_rounds": 1, "max_tokens": 4, "prompts": "tiny"},
    "held_out": {"limit": 2, "every": 1},
    "model": SPEAKER,
    "learner": {"warmup_steps": 1},
    "train": {"steps": 2, "batch_size": 4, "group_size": 2},
    "logging": {"progress": "none"},
}


def rows(kinds=("rubric", "number")):
    for n in range(8):
        if "rubric" in kinds:
            yield {"id": f"w{n}", "question": f"Write {n}.", "kind": "rubric", "rubric": "Wet."}
        if "number" in kinds:
            yield {"id": f"n{n}", "question": f"Is {n} odd?", "answer": 1 + n % 2, "kind": "number"}


READ_BY = f"{Reader.__module__}:Reader"
READER = {"endpoints": {"judge": {"policy": READ_BY}}}


def config_of(tmp_path, kinds=("rubric", "number"), **changes):
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(kinds)))
    own = {
        "env": {"kind": "file", "path": str(tmp_path / "data.jsonl")},
        "run": {"dir": str(tmp_path / "run")},
    }
    verifier = {"endpoint": "judge", "max_tokens": 4000, "beside_truth": True}
    return Config.model_validate(SMALL | own | READER | {"verifier": verifier} | changes)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """The session of a run of two steps whose replies a model of our own reads."""
    return train(config_of(tmp_path_factory.mktemp("read")))


def test_what_a_verifier_model_says_rewards_and_is_no_truth(read):
    records = list(read_records(read.folder.transcripts))
    scored = [record for record in records if record.debate.problem.kind == "rubric"]
    graded = [record for record in records if record.debate.problem.kind == "number"]
    assert scored
    assert graded
    for record in records:
        assert (record.verdicts.verifier, record.verdicts.threshold) == (READ_BY, 0.5)
        for turn in (turn for turn in record.debate.turns if not turn.ballot):
            text = turn.parsed.solution.of(turn.completion.text) if turn.parsed.solution else None
            wanted = "missing" if text is None else {"Rain.": 0.75, "\\boxed{1}": 1.0}.get(text.strip(), 0.0)
            assert record.verdicts.scores[turn.id.agent][0] == wanted
    for record in scored:
        assert record.correct is None
        values = [0.0 if score == "missing" else score for (score,) in record.verdicts.scores]
        assert [value for (value,) in record.rewards.truth] == values
        assert dict(record.rewards.counters)["grades/right"] == 0
    for record in graded:  # truth rewards these, whatever the verdicts are
        assert [value for (value,) in record.rewards.truth] == [float(g is True) for (g,) in record.correct]
    lines = read_metrics(read.folder.metrics)
    for step, line in enumerate(lines):
        scores = [x for r in records if r.step == step for row in r.verdicts.scores for x in row]
        assert line["verifier/verdicts"] == len([score for score in scores if score != "missing"]) > 0
    assert all(line["reward/verdict/n"] + line["reward/truth/n"] == 32 for line in lines)
    assert all(line["accuracy/n"] == line["reward/truth/n"] for line in lines)
    assert sum(line["verifier/requests"] for line in lines) <= 16 * 5
    names = {"verifier/agreement", "verifier/compared", "eval/verifier/direct/passed"}
    assert names <= {n for x in lines for n in x}


@pytest.fixture(autouse=True)
def _asked_once(monkeypatch):
    """A request that failed is not sent again."""
    monkeypatch.setitem(Server.__init__.__kwdefaults__, "retries", 0)


@pytest.fixture
def serve():
    """Return what starts a server that answers the last message by (status, text); all end with the test."""
    with ExitStack() as stack:

        def start(answer):
            def reply(asked):
                status, text = answer(asked.body["messages"][-1]["content"])
                said = chat(text, usage=(100, 10)) if status == 200 else {"error": {"message": text}}
                return Answer(said, status)

            return stack.enter_context(serving(reply))

        yield start


def served(server, **more):
    judge = {"model": "judge-7b", "base_url": server.url, "timeout_s": 5}
    return {"endpoints": {"judge": judge}, "verifier": {"endpoint": "judge", "beside_truth": True, **more}}


@pytest.mark.slow
def test_a_server_that_fails_during_the_run_ends_it_with_its_steps_saved(tmp_path, serve):
    state = {"fails": False}
    server = serve(lambda content: (503, "overloaded") if state["fails"] else (200, opinion(content)))
    config = config_of(tmp_path, **served(server), held_out={"limit": 2, "every": 0})
    with open_training(config) as session:
        first = train_step(session, 0)
        finish_step(session, 0, first)
        state["fails"] = True
        (tmp_path / "verdicts.jsonl").unlink()
        session.verifying.model._cache._known.clear()
        with pytest.raises(VerifierError, match=r"gave no (verdict|answer).*503.*overloaded"):
            train_step(session, 1)
    assert [path.name for path in (tmp_path / "run/checkpoints").glob("step_*")] == ["step_000001"]
    state["fails"] = False
    assert train(config).step == 2


@pytest.mark.slow
def test_an_evaluation_shows_verdicts_beside_truth_and_their_agreement(tmp_path, debate_command, serve):
    server = serve(lambda content: (200, opinion(content)))
    config = config_of(tmp_path, **served(server), held_out={"limit": 8, "every": 0})
    train(config)
    asked = len(server.asked)
    code, out, err = debate_command("eval", str(tmp_path / "run"), "--json", str(tmp_path / "figures.json"))
    assert code == 0, err
    assert re.search(
        r"verifier model judge-7b \(no ground truth\): \d+ requests, .* verdicts, 0 without", err
    )
    figures = {row["name"]: row for row in json.loads((tmp_path / "figures.json").read_text())}
    assert {"direct/accuracy", "verifier/direct/passed", "verifier/debate/score/round_0"} <= set(figures)
    assert {"verifier/agreement", "verifier/false_positive_rate"} <= set(figures)
    assert "verifier agreement" in out
    assert len(server.asked) > asked
    asked = len(server.asked)
    code, again, err = debate_command("eval", str(tmp_path / "run"), "--json", str(tmp_path / "figures.json"))
    assert (code, len(server.asked)) == (0, asked), err
    assert again == out
    code, beside, err = debate_command("eval", str(tmp_path / "run"), "--modes", "lenient")
    assert (code, len(server.asked), "[lenient]" in beside) == (0, asked, True), err


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (("verifier.endpoint=none",), "only applies to a verifier model"),
        (("endpoints.judge.policy=opnai",), "endpoints.judge.policy: unknown policy 'opnai'"),
        (("verifier.samples=3",), "samples do not differ at temperature 0"),
        (("verifier.threshold=1.5",), "verifier.threshold"),
    ],
)
def test_settings_that_cannot_be_are_one_line(overrides, told):
    with pytest.raises(ConfigError) as caught:
        load_config(Config, RECIPE, overrides)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_recipe_for_writing_starts(tmp_path):
    tiny = json.dumps(SPEAKER["tiny"] | {"context_tokens": 8192}).replace('":', '" =')
    overrides = [
        *(f"env.path={RECIPE.parent / 'tasks.jsonl'}", f"run.dir={tmp_path / 'run'}"),
        *(f"endpoints.judge.policy={READ_BY}", "model.name_or_path=none", f"model.tiny={tiny}"),
        *("model.policy=none", "model.device=cpu", "model.dtype=float32", "model.lora_rank=0"),
        *("debate.prompts=tiny", "debate.max_tokens=4", "debate.context_tokens=none", "train.steps=1"),
        *("train.batch_size=2", "train.group_size=2", "logging.progress=none"),
    ]
    session = train(load_config(Config, RECIPE, overrides))
    [line] = read_metrics(session.folder.metrics)
    assert line["verifier/verdicts"] > 0
    assert line["reward/verdict/n"] > 0
    assert line["reward/truth/n"] == 0


def test_the_inspector_explains_a_reward_by_a_verdict_as_no_truth(read, debate_command):
    turn = next(
        f"0.{index} --turn {turn.id.agent}.0".split()
        for index, record in enumerate(read_records(read.folder.transcripts))
        if record.step == 0 and record.correct is None
        for turn in record.debate.turns
        if record.verdicts.scores[turn.id.agent][0] == 0.75
    )
    code, out, err = debate_command("inspect", read.folder.path, "why", *turn)
    assert code == 0, err
    assert f"verdict 0.75, passes, by the verifier model {READ_BY}: no ground truth" in out
    assert "[differs]" not in out


@pytest.mark.slow
def test_an_evaluation_asks_about_approaches_and_causes(tmp_path, debate_command, serve):
    def answer(content):
        label = re.search(r"Verdict (\w+): LABEL", content)
        if label is None and "Only the approach counts" in content:
            return 200, verdict(content, 0.5)
        if label is None:
            return 200, "whatever is asked at the start"
        assert re.search(r"<answer>\n[12]\n</answer>", content)
        return 200, f"Verdict {label[1]}: " + ("misread" if "\\boxed{2}" in content else "lazy")

    server = serve(answer)
    judged = served(server, beside_truth=False, diagnose=True)
    config = config_of(tmp_path, ("number",), held_out={"limit": 4, "every": 0}, **judged)
    train(config)
    words = ("--direct", "--samples", "12", "--json", str(tmp_path / "figures.json"))
    code, out, err = debate_command("eval", str(tmp_path / "run"), *words)
    assert code == 0, err
    rows = json.loads((tmp_path / "figures.json").read_text())
    figures = {row["name"]: row["value"] for row in rows if "minus" not in row}
    assert figures["verifier/direct/approach"] == 0.5
    causes = {name.rpartition("/")[2]: value for name, value in figures.items() if "/cause/" in name}
    assert sum(causes.values()) == pytest.approx(1)
    assert causes["misread"] > 0
    assert "out_of_range" in err  # an unknown label is no cause, and is counted
    assert "verifier direct cause misread" in out


def test_a_model_of_ones_own_machine_scores_in_this_process(read, tmp_path, monkeypatch):
    monkeypatch.setattr("envs.rubrics.model.MOST_WITHOUT", 1)
    folder = tmp_path / "model"
    folder.mkdir()
    write_model(folder, read.model)
    read.tokenizer.save_pretrained(folder)
    judged = {
        "endpoints": {"own": {"policy": "local", "model": str(folder)}},
        "verifier": {"endpoint": "own", "max_tokens": 3},
    }
    own = judged | {"run": {"dir": str(tmp_path / "local")}, "held_out": {"limit": 0}}
    session = train(config_of(tmp_path, ("rubric",), **own))
    for line in read_metrics(session.folder.metrics):
        without = (name for name in line if name.startswith("verifier/without/") and line[name])
        reasons = {name.rpartition("/")[2] for name in without}
        assert line["verifier/verdicts"] == 0  # random words state nothing
        assert reasons
        assert reasons <= {"truncated", "no_verdict"}
        assert line["verifier/tokens/generated"] <= 3 * line["verifier/requests"]


def test_judges_are_not_rewarded_by_verdicts_as_if_they_were_truth(tmp_path):
    pairs = {"advantages": {"judge": {"key": "pair"}}}
    with pytest.raises(ValueError, match=r"but the problem 'w\d' is only scored"):
        train(config_of(tmp_path, held_out={"limit": 0}, **pairs))
