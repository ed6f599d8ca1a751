import pytest

from debate_rl.config import Config
from debate_rl.warm_start.tokenizer import tiny_vocabulary

TAGS = tuple(f"<{end}{name}>" for name in ("solution", "evaluation", "comparison") for end in ("", "/"))


def vocabulary(**changes):
    return tiny_vocabulary(Config.model_validate({"model": {"tiny": {}}} | changes))


def test_tags_handles_own_pieces_and_the_familys_numbers_each_once():
    tiny, handles = {"tiny": {"pieces": [" hello", "K7"]}}, {"handles": ["K7", "Q2", "M4"]}
    pieces = vocabulary(env={"kind": "pair_sum", "levels": [1]}, debate=handles, model=tiny)
    assert pieces[:6] == TAGS
    assert {"K7", "Q2", "M4", " hello", " 11", " 24", "\\boxed{"} <= set(pieces)
    assert " 25" not in pieces  # level 1 goes to 24
    assert len(pieces) == len(set(pieces))


def test_data_sets_bring_no_pieces_and_real_models_none_at_all():
    assert vocabulary() == TAGS
    assert vocabulary(model={"name_or_path": "some/model"}) == ()


@pytest.mark.parametrize("kind", ["pair_sum", "words", "stories", "products", "sorting"])
def test_every_text_of_a_family_is_made_of_pieces(kind):
    from debate_rl.warm_start.tokenizer import build_tokenizer
    from envs import load_environment

    pieces = vocabulary(env={"kind": kind, "levels": [1, 2]}, model={"tiny": {"fallback": "none"}})
    tokenizer = build_tokenizer(pieces, fallback="none")
    for problem in load_environment(kind, levels=[1, 2]).problems(split="train", limit=20, seed=1):
        ids = tokenizer.backend_tokenizer.encode(problem.question, add_special_tokens=False).ids
        assert tokenizer.backend_tokenizer.token_to_id("<|unknown|>") not in ids, problem.question
