from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from debate import Problem
from debate_rl.config import Config
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.preflight import inputs
from debate_rl.preflight.check import Check, is_go, of_estimate, summary
from debate_rl.preflight.debates import chosen_problems, coverage_checks, form_advice
from learner.advantages import TurnAdvantage


def config_of(**tables: object) -> Config:
    return Config.model_validate({"model": {"tiny": {}}} | tables)


def data_of(*problems: Problem, overlaps: int = 0) -> SimpleNamespace:
    return SimpleNamespace(train=problems, never_trained=(), overlaps=("one",) * overlaps)


def test_nothing_bad_is_go_and_a_bad_check_names_the_keys():
    fine = Check("a", "warn", 1.0, "so so", "x.y=1")
    assert is_go([fine])
    assert summary([fine]) == "go: no check is bad, 1 of 1 warn, 0 not measured"
    bad = [Check("b", "bad", None, "no", "x.y=2"), Check("c", "bad", None, "no", "x.y=2")]
    assert not is_go([fine, *bad])
    assert summary([fine, *bad]) == "no go: b, c; set x.y=2"


def test_bounds_of_rates_and_differences_end_where_they_can():
    rate = clustered_mean([1, 1, 0, 0], ["a", "a", "b", "b"])
    check = of_estimate("x", "ok", rate, "y")
    assert (check.low, check.high) == (0.0, 1.0)
    apart = of_estimate("x", "ok", Estimate(0.0, -9.0, 9.0, 2, 2, p=1.0), "y")
    assert (apart.low, apart.high) == (-1.0, 1.0)
    one = clustered_mean([1, 0], ["a", "a"])
    assert of_estimate("x", "ok", one, "y").low is None


def test_data_without_answers_or_with_repeated_questions_is_named():
    problems = [Problem("1", "2 + 2?", "4"), Problem("2", " 2 +  2?", "")]
    problems += [Problem("3", "Write.", "", kind="open")]
    checks = {check.name: check for check in inputs.data_checks(data_of(*problems, overlaps=2))}
    wanted = {"missing answers": (1, "bad"), "repeated questions": (1, "warn"), "overlaps": (2, "warn")}
    assert checks["problems"].value == 3
    assert {name: (checks[name].value, checks[name].verdict) for name in wanted} == wanted
    whole = {check.name: check.line() for check in inputs.data_checks(data_of(problems[0]))}[
        "missing answers"
    ]
    assert whole.startswith("ok            missing answers: 0; among 1 problem of gradable kinds")


def test_a_base_tokenizer_that_brings_a_template_is_no_go():
    def checked(template: str | None = "{{ x }}", **model: object) -> Check:
        tokenizer = SimpleNamespace(chat_template=template)
        return inputs.template_check(Config.model_validate({"model": model}), tokenizer)

    base = {"name_or_path": "Qwen/Qwen3-8B-Base"}
    assert (checked(**base).verdict, checked(**base).set) == ("bad", "model.chat=false")
    assert checked(**base, chat=False).verdict == "ok"
    check = checked(name_or_path="m/Some-Instruct", chat=False)
    assert (check.verdict, check.set) == ("bad", "model.chat=true")
    check = checked(template=None, name_or_path="m", chat=True)
    assert (check.verdict, check.set) == ("bad", "model.chat=false")


def loaded(folder: object) -> dict[str, Check]:
    config = Config.model_validate({"model": {"name_or_path": str(folder), "device": "cpu"}})
    return {check.name: check for check in inputs.model_checks(config, data_of(Problem("1", "2 + 2?", "4")))}


def test_a_model_that_cannot_be_loaded_is_bad_once(tmp_path):
    checks = loaded(tmp_path)
    assert "no model in" in checks["model"].why
    unknown = dict.fromkeys(("template", "lengths", "memory"), "not measured")
    assert {name: check.verdict for name, check in checks.items()} == {"model": "bad"} | unknown


def test_weights_that_are_missing_or_cut_off_are_bad_without_being_read(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert "has settings but no weights" in loaded(tmp_path)["model"].why
    file = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(100)}, file)
    file.write_bytes(file.read_bytes()[:-8])
    assert f"{file} is missing or truncated" in loaded(tmp_path)["model"].why
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"weight": "part-2.safetensors"}}')
    assert "part-2.safetensors is missing or truncated" in loaded(tmp_path)["model"].why


def test_a_device_that_is_not_there_is_bad(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    config = Config.model_validate({"model": {"tiny": {}, "device": "cuda"}})
    (check,) = inputs.memory_checks(config, data_of(Problem("1", "2 + 2?", "4")))
    assert (check.name, check.verdict) == ("memory", "bad")
    assert "torch sees no CUDA device" in check.why


@pytest.mark.parametrize(
    ("value", "shown"),
    [(3e-5, "3e-05"), (0.0004, "0.0004"), (0.0005, "0.001"), (0.0, "0.000"), (1.0, "1.000"), (0, "0")],
)
def test_a_small_figure_is_not_shown_as_zero(value, shown):
    assert Check("learning rate", "warn", value, "why").line() == f"warn          learning rate: {shown}; why"


def types(dtype: str, compute: str = "auto", lora_rank: int = 0) -> Check:
    model = {"name_or_path": "m", "dtype": dtype, "lora_rank": lora_rank, "device": "cpu"}
    config = Config.model_validate({"model": model, "learner": {"compute": compute}})
    layer = torch.nn.Linear(1, 1, dtype=getattr(torch, dtype))
    layer.requires_grad_(lora_rank == 0)
    return inputs.dtype_check(config, layer)


def test_numeric_types_are_judged_as_the_learner_judges_them():
    assert types("float32").verdict == "ok"
    half = types("bfloat16")
    assert (half.verdict, half.set) == ("warn", "model.dtype=float32")
    assert "updates below 1/256 of a weight are lost" in half.why
    assert types("float16").verdict == "bad"
    assert types("bfloat16", lora_rank=8).verdict == "ok"


@pytest.mark.parametrize(
    ("parameters", "adapter", "advised"),
    [
        (1.7e9, False, 1e-5),
        (0.6e9, False, 1e-5),
        (6.8e9, False, 5e-6),
        (1.7e9, True, 5e-5),
        (170e9, True, 1e-5),
    ],
)
def test_the_suggested_learning_rate_goes_with_size_and_adapter(parameters, adapter, advised):
    assert inputs.suggested_lr(parameters, adapter=adapter) == pytest.approx(advised)


@pytest.mark.parametrize(("lr", "verdict"), [(4e-7, "warn"), (5e-7, "ok"), (5e-6, "ok"), (6e-6, "warn")])
def test_a_learning_rate_outside_of_a_tenth_to_once_warns(lr, verdict):
    config = Config.model_validate({"model": {"name_or_path": "m"}, "learner": {"lr": lr}})
    check = inputs.lr_check(config, 6_800_000_000)
    assert (check.verdict, check.set) == (verdict, "learner.lr=5e-06")


@pytest.mark.parametrize(
    ("on_gpu", "policy", "compute", "samples", "verdict"),
    [
        (False, None, "auto", "float32", "ok"),
        (False, None, "bfloat16", "bfloat16", "ok"),
        (True, None, "auto", "bfloat16", "ok"),
        (True, None, "float32", "float32", "ok"),
        (True, "vllm", "auto", "bfloat16", "ok"),
        (False, "vllm", "bfloat16", "float32", "warn"),
    ],
)
def test_full_weights_sample_in_the_type_they_learn_in(
    on_gpu, policy, compute, samples, verdict, monkeypatch
):
    device = torch.device("cuda" if on_gpu else "cpu")
    for module in ("models", "preflight.inputs"):
        monkeypatch.setattr(f"debate_rl.{module}.resolve_device", lambda _: device)
    config = config_of(model={"tiny": {}, "policy": policy}, learner={"compute": compute})
    check = inputs.dtype_check(config, torch.nn.Linear(2, 2))
    assert (check.verdict, check.set) == (verdict, f"learner.compute={samples}" * (verdict == "warn"))
    assert check.why.endswith(f", and the sampler in {samples}")


def test_settings_that_a_source_warns_of_are_those_of_the_report():
    checks = list(inputs.setting_checks(config_of(learner={"beta": 0.0})))
    assert any("no reference" in check.why and check.verdict == "warn" for check in checks)


def turn(**parts: float | None) -> TurnAdvantage:
    return TurnAdvantage(**({"generator": None, "judge": None, "format": None} | parts))


def test_coverage_counts_turns_with_an_advantage_other_than_zero():
    solved, nothing = turn(generator=1.0, truth=1.0, peer=0.0), turn(generator=0.0, truth=0.0, peer=0.0)
    advantages = [solved, turn(generator=0.0, truth=0.0, judge=-2.0), None, nothing]
    shares = {check.name: check.value for check in coverage_checks(advantages, config_of())}
    wanted = {"truth": 0.25, "peer": 0.0, "judge": 0.25, "format": 0.0}
    assert shares == {"advantages": 0.5} | {f"advantages, {name}": value for name, value in wanted.items()}
    alike = next(coverage_checks([turn(judge=1.0, truth=0.0)], config_of()))
    assert (alike.name, alike.verdict) == ("advantages, truth", "warn")
    votes = next(coverage_checks([turn(judge=1.0)], config_of(rewards={"truth_weight": 0.0})))
    assert (votes.name, votes.verdict) == ("advantages, truth", "not used")
    last = [*coverage_checks([None, turn(generator=0.0)], config_of())][-1]
    assert (last.verdict, last.value) == ("bad", 0.0)


def test_problems_with_truth_come_first():
    problems = [Problem(f"{n}", "?", "", kind="open") for n in range(5)] + [Problem("t", "?", "1")]
    assert chosen_problems(config_of(), data_of(*problems), 1) == [5]
    assert len(chosen_problems(config_of(), data_of(*problems), 9)) == 6


@pytest.mark.parametrize(
    ("kinds", "tables", "why", "remedy"),
    [
        (
            ["cut"] * 3 + ["no_answer"] * 2,
            {},
            "50% of turns lack valid form, most often cut (30%)",
            "max_tokens=4096",
        ),
        (
            ["cut"] * 3,
            {"debate": {"max_tokens": 100, "context_tokens": 400}},
            "cut (30%)",
            "context_tokens=500, or",
        ),
        (["no_solution"] * 3, {}, "no_solution (30%)", "debate.prompts=small, or first train the form"),
        (["unknown_label"] * 4, {"debate": {"prompts": "small"}}, "unknown_label", "first train the form"),
        (["no_answer"] * 9, {}, "no_answer (90%)", "grader.mode=lenient, or answer_checked"),
        (["no_answer"] * 9, {"grader": {"mode": "lenient"}}, "no_answer (90%)", "answer_checked"),
        (["cut"] * 2, {}, "", ""),  # .8 are valid
    ],
)
def test_the_main_failure_of_form_names_its_remedy(kinds, tables, why, remedy, monkeypatch):
    turns = kinds + [""] * (10 - len(kinds))
    monkeypatch.setattr("debate_rl.preflight.debates.form_failures", lambda debate: turns)
    found, cure = form_advice([None], config_of(**tables))
    assert why in found
    assert remedy in cure
    assert bool(found) == bool(cure) == bool(why)
