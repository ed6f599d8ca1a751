"""What a run is said to need before its model is loaded."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers

from debate_rl.config import Config
from debate_rl.config.data import EnvConfig, HeldOutConfig
from debate_rl.config.recipes import load_config, shipped_recipes
from debate_rl.curriculum.drive import stage_configs
from debate_rl.forecast.memory import Load, Memory, cure, memory_of, size
from debate_rl.forecast.plan import TooLargeError, chosen_here, planned
from debate_rl.forecast.time import Speed, time_line
from debate_rl.models import load_model, sketch_model
from debate_rl.sampling.load_problems import load_run_problems

TINY = {"hidden_size": 32, "layers": 2, "heads": 4, "intermediate_size": 48, "context_tokens": 512}
DEBATE = {"num_rounds": 2, "max_tokens": 16, "prompts": "tiny", "handles": ["K7", "Q2", "M4"]}


RECIPE = {
    "env": {"kind": "pair_sum", "levels": [1], "limit": 8},
    "held_out": {"limit": 4, "every": 2},
    "debate": DEBATE,
    "model": {"device": "cpu", "chat": True, "tiny": TINY},
    "train": {"steps": 3, "batch_size": 2, "group_size": 2, "sample_batch_size": 8},
}


def plan(folder: Path, there=None, *, ranks=1, **changes):
    """Return the plan of a run, on this machine or on a GPU of this many bytes."""
    config = Config.model_validate(RECIPE | {"run": {"dir": str(folder / "run")}} | changes)
    return planned(config, load_run_problems(config), there=there, ranks=ranks)


@pytest.fixture(scope="module")
def needs(tmp_path_factory):
    return plan(tmp_path_factory.mktemp("plan"))


def with_learner(needs, **learner):
    """Return the configuration of a plan with other settings of the learner."""
    learner = needs.config.learner.model_copy(update=learner)
    return needs.config.model_copy(update={"learner": learner})


@pytest.mark.slow
@pytest.mark.parametrize("lora_rank", [0, 2])
def test_a_model_without_data_is_counted_as_the_real_one(lora_rank, needs):
    settings = needs.config.model.model_copy(update={"lora_rank": lora_rank})
    real, _ = load_model(settings, vocabulary=("K7",), seed=0)
    sketch, _ = sketch_model(settings, vocabulary=("K7",), on_gpu=False)
    assert all(parameter.is_meta for parameter in sketch.parameters())
    assert memory_of(sketch, needs.load, needs.config) == memory_of(real, needs.load, needs.config)
    assert [(p.shape, p.dtype, p.requires_grad) for p in sketch.parameters()] == [
        (p.shape, p.dtype, p.requires_grad) for p in real.parameters()
    ]


def test_a_folder_with_settings_and_a_tokenizer_is_enough(needs, tmp_path):
    model, tokenizer = load_model(needs.config.model, vocabulary=("K7",), seed=0)
    model.config.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    settings = {"device": "cpu", "chat": True, "name_or_path": str(tmp_path), "dtype": "bfloat16"}
    found = plan(tmp_path, model=settings)
    assert found.memory.weights == pytest.approx(needs.memory.weights / 2, rel=0.2)
    assert {p.dtype for p in found.model.parameters()} == {torch.bfloat16}
    with pytest.raises(ValueError, match="cannot load"):
        load_model(found.config.model, seed=0)


def test_a_refreshed_reference_is_in_the_checkpoints(needs):
    """Four parts, not three; five checkpoints: 3 newest, the best, and one that is being written."""
    trained = sum(p.numel() for p in needs.model.parameters() if p.requires_grad)
    refreshed = replace(needs, config=with_learner(needs, beta=0.1, reference_every=2))
    for found, parts in ((needs, 3), (refreshed, 4)):
        assert f"5 checkpoints of {size(parts * 4 * trained)}, " in found.work_lines()[1]


@pytest.mark.slow
def test_on_a_gpu_an_adapter_stands_on_bfloat16(tmp_path):
    model = RECIPE["model"] | {"lora_rank": 2}
    here, there = (plan(tmp_path, room, model=model) for room in (None, 2**33))
    assert there.there == 2**33
    assert here.memory.weights > 1.5 * there.memory.weights


def test_a_run_that_does_not_fit_is_refused_unless_told_to_go_on(needs):
    small = replace(needs, there=needs.memory.peak - 1)
    replace(needs, there=needs.memory.peak).refuse_too_large()
    with pytest.raises(TooLargeError, match=r"does not fit in memory .*train\.over_memory=true"):
        small.refuse_too_large()
    assert "more than is available: " in small.memory_lines()[3]
    train = small.config.train.model_copy(update={"over_memory": True})
    replace(small, config=small.config.model_copy(update={"train": train})).refuse_too_large()


@pytest.mark.parametrize(
    ("done", "steps", "end"),
    [(0, 3, "in 3 steps; 3 evaluations of"), (2, 1, "in 1 step still to do; 1 evaluation of")],
)
def test_the_work_that_is_left_is_counted_by_hand(needs, done, steps, end):
    work, disk = replace(needs, done=done).work_lines()
    generated = steps * 12 * 3 * 16  # agents of all debates, rounds with the ballot, tokens
    assert needs.load.replies == 12
    assert f"at most {generated:,} tokens generated, " in work
    assert work.endswith(f"{end} 4 held-out problems")
    assert "5 checkpoints of " in disk


def test_a_policy_of_ones_own_has_no_plan(tmp_path):
    assert plan(tmp_path, model={"policy": "mine:policy", "name_or_path": "x"}) is None


BESIDE = RECIPE["model"] | {"lora_rank": 2, "policy": "vllm"}


def beside(tmp_path, utilization=0.5, *, room=2**33, vllm=(), **tables):
    """Return the plan of a run with vLLM on a GPU of this many bytes."""
    vllm = {"gpu_memory_utilization": utilization, **dict(vllm)}
    return plan(tmp_path, room, model=BESIDE | {"vllm": vllm}, **tables)


@pytest.mark.slow
def test_ranks_share_what_learns_and_have_their_engines_elsewhere(tmp_path):
    one, three = (plan(tmp_path, 2**33, model=BESIDE, ranks=ranks) for ranks in (1, 3))
    assert not three.engine.beside
    assert three.memory.optimizer == -(-one.memory.optimizer // 3)
    assert three.memory_lines()[2].startswith("  memory  of the first of 3 ranks, about ")


def test_an_engine_has_its_share_of_the_gpu(tmp_path):
    found = beside(tmp_path)
    weights = 2 * sum(parameter.numel() for parameter in found.model.parameters())
    assert (found.memory.engine, found.memory.sampling) == (4 * 2**30, 0)
    assert found.engine.token == 2 * 2 * 2 * 2 * 8  # 2 layers, 2 heads of 8
    tokens = (2**30 - weights) // 128  # 3 of the 4 GiB are the engine's own
    assert (found.engine.weights, found.engine.tokens) == (weights, tokens)
    debates = f"{tokens // (3 * found.load.longest)} debates of maximum length at once"
    held = f"weights of {size(weights)} and a cache of {tokens:,} tokens"
    assert found.memory_lines()[4] == f"  engine  vLLM has {held}: {debates}"
    found.refuse_too_large()


@pytest.mark.parametrize(("room", "kept"), [(69.9, 3.0), (79.0, 4.5)])
def test_vllm_keeps_more_of_a_large_gpu_where_it_takes_larger_batches(room, kept, tmp_path):
    found = beside(tmp_path, room=int(room * 2**30))
    cached = found.engine.tokens * found.engine.token / 2**30
    assert cached == pytest.approx(room / 2 - kept - found.engine.weights / 2**30, abs=1e-3)
    assert found.engine.asleep(found.memory).engine == kept * 2**30


@pytest.mark.parametrize(
    ("learner", "policy", "cap"),
    [
        ({}, "vllm", 2.0),
        ({}, None, "auto"),
        ({"compute": "bfloat16"}, None, "auto"),
        ({"tis_cap": 0}, "vllm", 0),
        ({"tis_cap": 3}, "vllm", 3),
        ({"old_logprobs": "sampling"}, "vllm", "auto"),
        ({"loss": "dppo_tv"}, "vllm", "auto"),
    ],
)
def test_importance_weights_are_chosen_where_an_engine_samples(learner, policy, cap, tmp_path):
    found = plan(tmp_path, model=BESIDE | {"policy": policy}, learner=learner)
    chosen = {"learner.tis_cap": 2.0} if cap == 2.0 else {}
    assert found.chosen == chosen_here(found.config, load_run_problems(found.config)) == chosen
    assert ("          learner.tis_cap = 2.0 was chosen" in found.memory_lines()) is bool(chosen)
    resolved = found.config.resolved_learner(found.chosen)
    assert (resolved.tis_cap, resolved.caps_weights) == (cap, cap not in (0, "auto"))


def test_learner_and_engine_must_fit_one_gpu_and_a_cache_a_reply(needs, tmp_path):
    found = beside(tmp_path)
    more = found.there - found.memory.peak
    crowded = replace(found, memory=replace(found.memory, learning=found.memory.learning + more + 1))
    key = r"model\.vllm\.gpu_memory_utilization"
    with pytest.raises(TooLargeError, match=rf"; lower {key} to 0\.49, or "):
        crowded.refuse_too_large()
    with pytest.raises(ValueError, match=rf"{key}=0\.3: 2\.4 GiB leave room for 0 cached to"):
        beside(tmp_path, 0.3).refuse_too_large()
    asleep = Memory(weights=2**32, reference=0, optimizer=0, sampling=2**32, learning=0, engine=2**30)
    assert cure(asleep, needs.config, 2**33) == "lower model.vllm.gpu_memory_utilization"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vllm", "async_level", "share", "words"),
    [
        *(({}, level, 4, "of maximum length at once") for level in (0, 1)),
        ({"engines": 1}, 0, 0, "of maximum length at once, on GPUs of its own"),
        ({"servers": ["http://localhost:8000/v1"]}, 1, 0, None),
    ],
)
def test_engines_elsewhere_take_nothing_of_the_learners_gpu(vllm, async_level, share, words, tmp_path):
    found = beside(tmp_path, vllm=vllm, train={"async_level": async_level})
    assert (found.memory.engine, found.memory.sampling) == (share * 2**30, 0)
    engine = [line for line in found.memory_lines() if line.startswith("  engine ")]
    assert [line.endswith(words) for line in engine] == ([] if words is None else [True])


SLEEPS = [("auto", 0, 3, True), ("auto", 0, 1, False), ("auto", 0, 5, False), ("auto", 1, 3, False)]
SLEEPS += [(True, 0, 1, False)]


@pytest.mark.parametrize(("sleep", "level", "learning", "chosen"), SLEEPS)
def test_an_engine_sleeps_where_both_fit_only_so(sleep, level, learning, chosen, tmp_path, monkeypatch):
    """6 of 8 GiB are the engine's, 3 of them kept asleep; the learner holds 1 all the time."""
    parts = {"weights": 2**30, "reference": 0, "optimizer": 0, "sampling": 0, "engine": 6 * 2**30}
    memory = Memory(learning=learning * 2**30, **parts)
    monkeypatch.setattr("debate_rl.forecast.plan.memory_of", lambda *_, **__: memory)
    found = beside(tmp_path, 0.75, vllm={"sleep": sleep}, train={"async_level": level})
    assert ("model.vllm.sleep" in found.chosen) is chosen
    asleep = Memory(learning=learning * 2**30, **parts | {"engine": 3 * 2**30, "sampling": 3 * 2**30})
    assert found.memory == (asleep if chosen or sleep is True else memory)
    assert ("          model.vllm.sleep = true was chosen" in found.memory_lines()) is chosen
    resolved = found.config.with_chosen(found.chosen).model.vllm.sleep
    assert resolved == (True if chosen else sleep)
    assert found.too_large is (found.memory.peak > 2**33)


@pytest.mark.parametrize(("level", "vllm"), [(1, {}), (0, {"engines": 1}), (0, {"servers": ["http://h/v1"]})])
def test_what_samples_meanwhile_cannot_sleep(level, vllm, tmp_path):
    with pytest.raises(ValueError, match=r"model\.vllm\.sleep = true: "):
        beside(tmp_path, vllm=vllm | {"sleep": True}, train={"async_level": level})


@pytest.mark.parametrize(
    ("setting", "roomy", "chosen"), [("auto", False, True), ("auto", True, False), (False, False, False)]
)
def test_layers_are_computed_again_where_the_run_would_not_fit(setting, roomy, chosen, needs, monkeypatch):
    config = with_learner(needs, gradient_checkpointing=setting, micro_batch_tokens=2**20)
    there = needs.memory.peak * (4 if roomy else 1)
    monkeypatch.setattr("debate_rl.forecast.plan.memory_there", lambda _: there)
    found = planned(config, load_run_problems(config))
    key = "learner.gradient_checkpointing"
    assert found.chosen == ({key: True} if chosen else {})
    assert (f"          {key} = true was chosen" in found.memory_lines()) is chosen
    assert config.resolved_learner(found.chosen).gradient_checkpointing == (True if chosen else setting)
    assert (found.memory.learning < needs.memory.learning) is chosen


@pytest.mark.slow
def test_what_rows_share_is_told(needs):
    config = with_learner(needs, share_prefixes=True)
    found = planned(config, load_run_problems(config))
    (opening, _), *_ = found.load.rounds
    assert found.load.together == 3
    assert 0 < found.load.shared[0] < opening  # persona, handle and task are an agent's own
    own = opening - found.load.shared[0]
    read = 4 * sum(prompt - own + 3 * (own + reply) for prompt, reply in found.load.rounds)  # four debates
    assert f" trained on by reading {3 * read:,} in 3 steps" in found.work_lines()[0]
    other = config.model_copy(update={"debate": config.debate.model_copy(update={"order": "per_viewer"})})
    assert set(planned(other, load_run_problems(other)).load.shared) == {found.load.shared[0]}


def test_the_time_rests_on_what_was_measured(needs, tmp_path):
    rows = [
        {"step": 0, "seconds/rollout": 100.0, "seconds/learn": 50.0, "seconds/record": 30.0},
        {"step": 1, "seconds/rollout": 120.0, "seconds/learn": 60.0, "seconds/evaluate": 600.0},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert time_line(needs, tmp_path, here=False) == (
        "  time    about 13 min left: 1 step of 3 min, 1 evaluation of 10 min; from the 2 finished steps"
    )
    unknown = replace(needs, there=2**30)
    assert time_line(unknown, None, here=False).startswith("  time    not known: ")
    sheet = time_line(replace(needs, there=79 * 2**30), None, here=False)
    assert re.match(
        "  time    at least .*: 3 steps of .*; from the peak speed in the H100 SXM data sheet", sheet
    )
    assert sheet.endswith("; nothing was run on that GPU")


def test_a_start_and_a_plan_tell_the_same_time_in_the_same_words(needs, monkeypatch):
    # 12 replies, 8 at a time, prompts of 100 and 200 tokens at 10 a second, 16 tokens of 2 s in each reply:
    # 12 x 300 / 10 + 2 rounds x 2 batches x 16 x 2 = 488 s. An evaluation of 4 problems has as many replies
    # in debates, 488 s, and alone 12 x 200 / 10 + 128 = 368 s.
    load = Load(((100, 16), (200, 16)), replies=12, sampled=8, micro_tokens=needs.load.micro_tokens)
    plan = replace(needs, load=load)
    monkeypatch.setattr("debate_rl.forecast.time.probe", lambda *_: Speed(10.0, 1e9, 2.0))
    monkeypatch.setattr("debate_rl.forecast.time.load_run_model", lambda _: (object(), None))
    line = time_line(plan, None, here=True)
    assert line == time_line(plan, None, here=True, model=object())
    assert line == (
        "  time    about 1.1 h: 3 steps of 8.1 min (sampling 8.1 min, learning 0.01 s), 3 evaluations of "
        "14 min; from a short probe of this model"
    )
    resumed = time_line(replace(plan, done=2), None, here=True, model=object())
    assert resumed.startswith("  time    about 22 min left: 1 step of 8.1 min (")
    over = time_line(replace(plan, done=3), None, here=True, model=object())
    assert over == "  time    none: 3 steps of 3 are done"


MODELS = {
    "Qwen/Qwen3-1.7B": ((2048, 6144, 28, 16, 8, 128, True), 1.72e9),
    "Qwen/Qwen3-4B": ((2560, 9728, 36, 32, 8, 128, True), 4.02e9),
    "Qwen/Qwen3-8B": ((4096, 12_288, 36, 32, 8, 128, False), 8.19e9),
    "Qwen/Qwen2.5-0.5B": ((896, 4864, 24, 14, 2, 64, True), 0.49e9),
    "Qwen/Qwen2.5-14B": ((5120, 13_824, 48, 40, 8, 128, False), 14.8e9),
    "HuggingFaceTB/SmolLM2-1.7B": ((2048, 8192, 24, 32, 32, 64, True), 1.71e9),
}
"""Width, that of the MLPs, layers, heads, those of keys, their size and tied embeddings of the published
settings; parameters. Qwen2.5 is counted as a Qwen3 of its shape, whose vocabulary is as large within 0.1%,
and SmolLM2, a Llama, as a Qwen3 of its shape and of its own vocabulary and context."""
VOCABULARY = {"HuggingFaceTB/SmolLM2-1.7B": (49_152, 8192)}
"""Tokens and context of a model that is not Qwen's; theirs are 151,936 and 40,960."""
CARDS = {
    "gsm8k_qwen3_1b7_24gb": 22.5,
    "gsm8k_qwen3_4b_48gb": 45,
    "gsm8k_qwen3_8b_1gpu": 79,
    "math_qwen3_8b_1gpu": 79,
    "aime_qwen3_8b_1gpu": 79,
    "math_qwen3_1b7_80gb": 79,
    "math_smollm2_1b7_80gb": 79,
    "gsm8k_qwen3_1b7_full_80gb": 79,
    "gsm8k_qwen3_4b_full_141gb": 139,
    "curriculum/gsm8k_to_aime_qwen3_8b": 79,
    "writing/qwen3_4b": 45,
    **{name: 79 for name in shipped_recipes() if name.startswith(("rlvr/", "sft/")) and "qwen3" in name},
    **{name: 79 for name in shipped_recipes() if name.startswith("seeds/") and "tiny" not in name},
    **{f"aimo3/{stage}": 139 for stage in ("cot", "tir", "rl", "full")},
    "seeds/aimo_local": 22.5,
}
"""GiB that a program sees of the smallest card of that name, as an A10G of 24 GB or an L40S of 48 GB."""


def test_every_recipe_for_a_gpu_is_checked():
    assert CARDS.keys() | {"rlvr/gpu"} == {
        name for name in shipped_recipes() if load_config(Config, name).model.policy == "vllm"
    }


@pytest.mark.slow
@pytest.mark.parametrize("recipe", CARDS)
def test_a_recipe_fits_its_card_with_every_reply_at_its_limit(recipe, needs, tmp_path):
    """The model is the published settings with a tokenizer of bytes, which makes prompts longer."""
    name = load_config(Config, recipe, []).model.name_or_path
    name = name.removesuffix("-Base").removesuffix("-Instruct-2507").removesuffix("-Instruct")
    (hidden, inner, layers, heads, keys, wide, tied), count = MODELS[name]
    tokens, context = VOCABULARY.get(name, (151_936, 40_960))
    sizes = {"vocab_size": tokens, "hidden_size": hidden, "intermediate_size": inner, "head_dim": wide}
    shape = {"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": keys}
    rest = {"max_position_embeddings": context, "tie_word_embeddings": tied}
    transformers.Qwen3Config(**sizes, **shape, **rest).save_pretrained(tmp_path)
    load_model(needs.config.model, vocabulary=(), seed=0)[1].save_pretrained(tmp_path)
    problems = ["kind=pair_sum", "path=none", "levels=none", "split=train", "limit=8", "mix=none"]
    problems += ["difficulty=none", "decontaminate=none"]
    overrides = [f"model.name_or_path={tmp_path}", "verifier=none", *(f"env.{text}" for text in problems)]
    ends = 7 * hidden + 2 * wide * (heads + keys) + 3 * inner
    if (whole := load_config(Config, recipe, overrides[:1])).stages:
        made = {"env": EnvConfig(kind="pair_sum", limit=8), "held_out": HeldOutConfig(limit=0)}
        configs = [own.model_copy(update=made) for _, own in stage_configs(whole)]
    else:
        none = ["held_out.kind=none", "held_out.limit=0", "held_out.more=none"]
        configs = [load_config(Config, recipe, [*overrides, *none])]
    for config in configs:
        fits_its_card(config, recipe, layers * ends, count)


def fits_its_card(config, recipe, ends, count):
    found = planned(config, load_run_problems(config), there=int(CARDS[recipe] * 2**30))
    rank = config.model.lora_rank
    weights = 2 * count + 4 * rank * ends if rank else 4 * count
    assert found.memory.weights == pytest.approx(weights, rel=0.05)
    assert found.memory.peak < 0.9 * found.there, found.memory_lines()
    found.refuse_too_large()
    assert found.engine.tokens > found.engine.limit  # a whole context fits the cache
    assert found.load.together == config.debate.num_agents
