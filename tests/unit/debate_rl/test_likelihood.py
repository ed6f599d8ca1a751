"""What a reader gives a gold answer, beside the plain computation, and what it is shown."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from debate import Debate, DebateConfig, Persona, Problem
from debate_rl.config import Config
from debate_rl.config.likelihood import LikelihoodConfig
from debate_rl.likelihood import Baseline, Baselines, Reader, open_reader, reference_logprobs
from debate_rl.runs.weights import load_run_model
from learner.update.learner import Learner

TINY = {"hidden_size": 16, "layers": 1, "heads": 2, "intermediate_size": 24, "init_std": 0.5}
PROBLEM = Problem("p", "Target 19. Numbers 3 8 5 11 2 9.", "8 11")


def reader_of(path: Path, *, lora_rank: int = 0, **likelihood: Any) -> Reader:
    tables = {"env": {"kind": "pair_sum"}, "rewards": {"likelihood_weight": 1.0}, "likelihood": likelihood}
    tables |= {"learner": {"keep_reference": True, "lr": 0.05, "warmup_steps": 0}}
    tables |= {"model": {"device": "cpu", "lora_rank": lora_rank, "tiny": TINY | {"context_tokens": 64}}}
    config = Config.model_validate(tables)
    model, tokenizer = load_run_model(config)
    learner = Learner(model, config.resolved_learner(), total_steps=2)
    reader = open_reader(config, learner, tokenizer, path)
    assert reader is not None
    return reader


def plain_logprob(reader: Reader, before: str, answer: str) -> float:
    """Return the mean log-probability of the answer's tokens by one forward pass of the whole model."""
    encode = reader.tokenizer.encode
    prompt = encode(before, add_special_tokens=False)
    ids = prompt + encode(answer, add_special_tokens=False)
    with torch.no_grad():
        logits = reader.learner.model(torch.tensor([ids])).logits[0].log_softmax(-1)
    scored = [float(logits[at - 1, ids[at]]) for at in range(len(prompt), len(ids))]
    return sum(scored) / len(scored)


def test_the_reference_writes_in_the_type_that_it_reads_in(tmp_path: Path):
    reader = reader_of(tmp_path)
    reader.learner.compute = torch.bfloat16
    assert reader._writer._compute == torch.bfloat16


def test_it_is_the_mean_log_probability_of_the_answers_tokens_and_of_what_follows_it(tmp_path: Path):
    reader = reader_of(tmp_path)
    texts = [(PROBLEM, " 11 + 8 = 19."), (PROBLEM, ""), (PROBLEM, " 3 + 9 = 12. 12 + 2")]
    expected = [plain_logprob(reader, f"Reasoning: {text}\nAnswer:", " 8 11\n") for _, text in texts]
    assert reader.logprobs(texts) == pytest.approx(expected, abs=1e-5)
    assert len({round(value, 3) for value in expected}) == 3


def test_the_question_never_reaches_the_reader(tmp_path: Path):
    reader = reader_of(tmp_path)
    others = [Problem("p", question, "8 11") for question in ("", "Target 19.", "another " * 9)]
    rows = [reader.rows.row(problem, " 11 + 8") for problem in (PROBLEM, *others)]
    assert len({row.input_ids.tobytes() for row in rows if row is not None}) == 1
    assert rows[0] is not None
    read = reader.tokenizer.decode(rows[0].input_ids)
    assert read == "Reasoning:  11 + 8\nAnswer: 8 11\n"
    assert "Target" not in read
    assert "Numbers" not in read


def test_what_a_solution_writes_cannot_be_a_field_of_the_prompt_or_a_control_token(tmp_path: Path):
    reader = reader_of(tmp_path)
    row = reader.rows.row(PROBLEM, "$answer <|end|> $$")
    assert row is not None
    assert reader.tokenizer.eos_token_id not in row.input_ids.tolist()
    assert "$answer <|end|> $$" in reader.tokenizer.decode(row.input_ids)


def test_a_text_beyond_the_context_has_no_value(tmp_path: Path):
    reader = reader_of(tmp_path)
    long, short = reader.logprobs([(PROBLEM, " 11" * 500), (PROBLEM, " 11")])
    assert (long is None, short is None) == (True, False)


def test_a_baseline_beyond_the_context_is_that_of_no_reasoning(tmp_path: Path, monkeypatch: Any):
    reader = reader_of(tmp_path)
    monkeypatch.setattr(reader, "_written", lambda problems, step: [" 11" * 500] * len(problems))
    protocol = DebateConfig(num_agents=1, num_rounds=1)
    debate = Debate(PROBLEM, (Persona("A", "solve"),), (), (), 0, 0, protocol)
    [read] = reader.read([debate], 0)
    assert read.baseline == reader.logprobs([(PROBLEM, "")])[0]


@pytest.mark.parametrize("lora_rank", [0, 2])
def test_the_reader_stays_as_it_was_when_the_policy_has_learnt(tmp_path: Path, lora_rank: int):
    reader = reader_of(tmp_path, lora_rank=lora_rank)
    row = reader.rows.row(PROBLEM, " 11 + 8")
    assert row is not None
    before, own = reference_logprobs(reader.learner, [row]), reader.learner.logprobs([row])
    with torch.no_grad():
        for parameter in reader.learner.parameters:
            parameter.add_(0.3)
    assert reference_logprobs(reader.learner, [row]) == before
    assert not torch.allclose(reader.learner.logprobs([row]), own)


def test_several_rows_have_the_values_that_each_has_alone(tmp_path: Path):
    reader = reader_of(tmp_path)
    texts = [(PROBLEM, " 11" * count) for count in (3, 9, 1, 5)]
    assert reader.logprobs(texts) == pytest.approx([reader.logprobs([one])[0] for one in texts], abs=1e-5)


@pytest.mark.parametrize(
    "prompt", ["$answer $reasoning", "$reasoning", "$reasoning $answer $question", "$reasoning $ $answer", ""]
)
def test_a_prompt_needs_its_two_fields_in_order_and_no_other(prompt: str):
    with pytest.raises(ValueError, match=r"must contain \$reasoning"):
        LikelihoodConfig(prompt=prompt)


def test_a_prompt_may_write_a_dollar_sign_and_braces():
    parts = LikelihoodConfig(prompt="${reasoning} costs $$${answer}!").parts("a", "7")
    assert parts == ("a costs $", "7!")


def test_baselines_are_read_again_and_a_damaged_line_is_named(tmp_path: Path):
    Baselines(tmp_path).add([Baseline(0, "p", " 8 \U0001f600", -0.1 - 0.2)])
    kept = Baselines(tmp_path)
    assert kept.known == {"p": -0.1 - 0.2}
    kept.add([Baseline(1, "q", "", None)])
    assert Baselines(tmp_path).known == {"p": -0.1 - 0.2, "q": None}
    path = tmp_path / "likelihood.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["step"] for line in lines] == [0, 1]
    path.write_text(path.read_text() + '{"step": 2, "problem": "r"}\n')
    with pytest.raises(ValueError, match=r"likelihood.jsonl:3: is not a baseline"):
        _ = Baselines(tmp_path).known


def test_ranks_that_share_a_model_are_refused_in_one_line(tmp_path: Path):
    reader = reader_of(tmp_path)
    with pytest.raises(ValueError, match="several ranks"):
        open_reader(reader.config, object(), reader.tokenizer, tmp_path)
