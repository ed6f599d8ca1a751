"""Small models and tokenizers, and clear errors for those that cannot be loaded."""

import json
import os

import pytest
import torch
from huggingface_hub import constants
from hypothesis import given, settings
from hypothesis import strategies as st

from debate_rl import models
from debate_rl.config import Config
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.config.recipes import load_config, shipped_recipes
from debate_rl.known_models import known_settings
from debate_rl.models import chat_flag, load_model, resolve_device, resolve_dtype, sketch_model
from debate_rl.warm_start.tokenizer import build_tokenizer
from envs import hub

PIECES = [*(f" {n}" for n in range(31)), "11", "K7", " K7", "日本", "<solution>", "</solution>"]
PIECES += ["\\boxed{", "}"]


TOKENIZER = build_tokenizer(PIECES)


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("piece", PIECES)
def test_one_token_for_each_piece(piece):
    for fallback in ("bytes", "ascii", "none"):
        tokenizer = build_tokenizer(PIECES, fallback=fallback)
        assert tokenizer.decode(ids_of(tokenizer, piece)) == piece
        assert len(ids_of(tokenizer, piece)) == 1


def test_the_longest_piece_wins():
    tokenizer = TOKENIZER
    assert tokenizer.tokenize("<solution> 8 + 11 = 19. \\boxed{ 11 8}</solution>")[1:3] == [" 8", "Ġ"]
    assert tokenizer.tokenize(" 11 1 30 31 3") == [" 11", " 1", " 30", " 3", "1", " 3"]


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text(alphabet="<> 1K7solutin/é"))
def test_every_text_round_trips(text):
    whole = TOKENIZER.decode(ids_of(TOKENIZER, text)) == text
    assert whole or any(control in text for control in TOKENIZER.all_special_tokens)


def test_roles_and_ids():
    tokenizer = build_tokenizer(PIECES)
    chat = [{"role": "user", "content": " 1"}, {"role": "assistant", "content": " 2"}]
    assert tokenizer.apply_chat_template(chat, tokenize=False) == "<|user|> 1<|assistant|> 2<|end|>"
    asked = tokenizer.apply_chat_template(chat[:1], add_generation_prompt=True)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(asked) == ["<|user|>", " 1", "<|assistant|>"]
    assert len({tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id}) == 3


@pytest.mark.parametrize("piece", ["Ġx", "<|user|>", "", "é"])  # é alone would stand for a byte
def test_a_piece_that_cannot_be_one_is_refused(piece):
    with pytest.raises(ValueError, match="vocabulary"):
        build_tokenizer([piece])


def test_model_of_the_quick_start_size():
    model, tokenizer = load_model(ModelConfig(tiny=TinyConfig(fallback="none")), vocabulary=PIECES, seed=1)
    assert 290_000 < model.num_parameters() < 310_000
    assert model.config.vocab_size == len(tokenizer)
    assert model.model.layers[0].mlp.up_proj.weight.std().item() == pytest.approx(0.06, rel=0.05)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_the_seed_decides_the_weights_and_the_global_stream_is_left_alone():
    config = ModelConfig(tiny=TinyConfig(hidden_size=16, intermediate_size=16), device="cpu", lora_rank=2)
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    first, second, other = (load_model(config, seed=seed)[0].state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_saved_and_loaded(tmp_path):
    model, tokenizer = load_model(ModelConfig(tiny=TinyConfig(), device="cpu"), vocabulary=PIECES, seed=1)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, same = load_model(ModelConfig(name_or_path=str(tmp_path), device="cpu"), seed=9)
    text = "<solution> 8 + 11 = 19 é😀 \n\\boxed{ 11 8}</solution>"
    assert ids_of(same, text) == ids_of(tokenizer, text)
    assert same.decode(ids_of(same, text)) == text
    assert same.chat_template == tokenizer.chat_template
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert next(again.parameters()).dtype == torch.float32


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("rank", "alpha"), [(2, 4.0), (8, 16.0)])
def test_an_adapter_has_its_rank_and_scale_and_is_float32(dtype, rank, alpha):
    config = ModelConfig(tiny=TinyConfig(), device="cpu", dtype=dtype, lora_rank=rank, lora_alpha=alpha)
    model, _ = load_model(config, seed=1)
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    assert len(trained) == 2 * 7 * 2  # two matrices for each of the seven linear layers of two blocks
    assert all("lora_" in name for name in trained)
    # q_proj is 128 to 4 heads of 32, in two layers
    of_q = [weight for name, weight in trained.items() if "q_proj" in name]
    assert sum(weight.numel() for weight in of_q) == 2 * rank * (128 + 128)
    assert {weight.dtype for weight in trained.values()} == {torch.float32}
    assert {w.dtype for w in model.parameters() if not w.requires_grad} == {getattr(torch, dtype)}
    layer = model.get_submodule("base_model.model.model.layers.0.self_attn.q_proj")
    assert layer.scaling == {"default": alpha / rank}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name_or_path": "/no/such/model"}, r"model\.name_or_path: no model in '/no/such/model'"),
        ({"name_or_path": "./nothing-here"}, r"neither config\.json nor a \.gguf file"),
        ({"name_or_path": "nobody-0/nothing-0"}, r"model\.name_or_path: cannot load 'nobody-0/nothing-0': "),
        ({"tiny": {}, "device": "gpu7"}, r"model\.device: unknown device 'gpu7'"),
        ({"tiny": {}, "device": "meta"}, r"model\.device: 'meta', but torch sees no META device"),
    ],
)
def test_what_cannot_be_loaded_says_why_in_one_line(fields, message):
    with pytest.raises(ValueError, match=message) as caught:
        load_model(ModelConfig(**fields), seed=0)
    assert "\n" not in str(caught.value)


@pytest.fixture
def folder(tmp_path):
    """A folder with a tiny model and its tokenizer."""
    for part in load_model(ModelConfig(tiny=TinyConfig(hidden_size=16), device="cpu"), vocabulary=(), seed=0):
        part.save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("config.json", b"[]"),
        ("tokenizer.json", b"{}"),
        ("tokenizer_config.json", b"[" * 100_000),
        ("model.safetensors", b"\xff" * 100),
    ],
)
def test_a_damaged_model_is_one_line(folder, name, data):
    (folder / name).write_bytes(data)
    with pytest.raises(ValueError, match=r"^model\.name_or_path: cannot load '.*': .") as caught:
        load_model(ModelConfig(name_or_path=str(folder), device="cpu"), seed=0)
    assert "\n" not in str(caught.value)


class Touches:
    """Unpickled, it makes a file: code instead of data."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_code_among_the_weights_is_never_run_nor_advised(folder):
    (folder / "model.safetensors").unlink()
    torch.save({"a": Touches(folder / "made")}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r": its weights are not plain tensors\. Give a folder"):
        load_model(ModelConfig(name_or_path=str(folder), device="cpu"), seed=0)
    assert not (folder / "made").exists()


def test_code_in_a_models_folder_is_never_run_and_nobody_is_asked(folder, monkeypatch):
    (folder / "theirs.py").write_text(f"import os\nos.mkdir({str(folder / 'made')!r})\nclass C: pass\n")
    names = dict.fromkeys(("AutoConfig", "AutoModelForCausalLM"), "theirs.C")
    names |= {"AutoTokenizer": ["theirs.C", None]}
    for name in ("config.json", "tokenizer_config.json"):
        fields = json.loads((folder / name).read_text()) | {"auto_map": names}
        fields = fields | ({"model_type": "theirs"} if name == "config.json" else {"tokenizer_class": "C"})
        (folder / name).write_text(json.dumps(fields))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(ValueError, match="contains custom code"):
        load_model(ModelConfig(name_or_path=str(folder), device="cpu"), seed=0)
    assert not (folder / "made").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there():
    with pytest.raises(ValueError, match="torch sees no CUDA device"):
        load_model(ModelConfig(tiny=TinyConfig(), device="cuda"), seed=0)


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [
        (True, True, ("cuda", torch.float32, torch.bfloat16)),
        (True, False, ("cuda", torch.float32, torch.bfloat16)),
        (False, True, ("mps", torch.float32, torch.float32)),
        (False, False, ("cpu", torch.float32, torch.float32)),
    ],
)
def test_auto_takes_the_gpu_that_is_there_and_halves_only_what_is_not_trained(
    cuda, mps, expected, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    whole, adapter = ModelConfig(tiny=TinyConfig()), ModelConfig(tiny=TinyConfig(), lora_rank=4)
    assert (resolve_device("auto").type, resolve_dtype(whole), resolve_dtype(adapter)) == expected


DRIVER = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC\n"


@pytest.mark.parametrize(
    ("driver", "cuda", "visible", "refused"),
    [
        (DRIVER, "13.0", None, True),
        (DRIVER, "13.0", "0", True),
        (DRIVER, "13.0", "", False),
        (DRIVER, None, None, False),
        (None, "13.0", None, False),
    ],
    ids=["old-driver", "old-driver-visible", "hidden", "torch-of-a-cpu", "no-driver"],
)
def test_auto_is_not_the_cpu_where_a_gpu_cannot_be_used(
    driver, cuda, visible, refused, monkeypatch, tmp_path
):
    for library in (torch.cuda, torch.backends.mps):
        monkeypatch.setattr(library, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr("debate_rl.models.NVIDIA_DRIVER", tmp_path / "version")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if driver is not None:
        (tmp_path / "version").write_text(driver)
    assert resolve_device("cpu").type == "cpu"
    if not refused:
        assert resolve_device("auto").type == "cpu"
        return
    with pytest.raises(ValueError, match=r'^model\.device: "auto", .* 535\.183\.01 .* driver 580 or later'):
        resolve_device("auto")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "exactly one of name_or_path"),
        ({"name_or_path": "x", "tiny": {}}, "exactly one of name_or_path"),
        ({"tiny": {"heads": 3}}, "heads: 3 must divide hidden_size 128"),
        ({"tiny": {"hiden_size": 8}}, "did you mean 'hidden_size'"),
        ({"tiny": {"hidden_size": 10**20}}, r"tiny\.hidden_size: .* less than or equal to"),
        ({"tiny": {"layers": 10**8}}, r"tiny\.layers: .* less than or equal to"),
        ({"tiny": {}, "lora_rank": 10**20}, r"lora_rank: .* less than or equal to"),
        ({"tiny": {}, "policy": "vlm"}, 'unknown policy .vlm.; valid: openai, vllm, or "module:factory"'),
    ],
)
def test_impossible_configurations(fields, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**fields)


def test_a_base_model_with_a_chat_template_is_warned_of():
    tokenizer = build_tokenizer([], fallback="ascii")
    with pytest.warns(models.ChatWarning, match="Qwen/Qwen3-1.7B-Base looks like a base model"):
        assert chat_flag(ModelConfig(name_or_path="Qwen/Qwen3-1.7B-Base"), tokenizer) is True
    for name, chat in (("Qwen/Qwen3-1.7B-Base", False), ("Qwen/Qwen3-1.7B-Base", True), ("x/Database", None)):
        assert chat_flag(ModelConfig(name_or_path=name, chat=chat), tokenizer) is (chat is not False)


def test_chat_is_a_property_of_the_entry():
    tokenizer = build_tokenizer(PIECES)
    assert chat_flag(ModelConfig(tiny=TinyConfig()), tokenizer) is True
    assert chat_flag(ModelConfig(tiny=TinyConfig(), chat=False), tokenizer) is False
    tokenizer.chat_template = None
    assert chat_flag(ModelConfig(tiny=TinyConfig()), tokenizer) is False
    with pytest.raises(ValueError, match=r"model\.chat: true, .* set model\.chat = false"):
        chat_flag(ModelConfig(tiny=TinyConfig(), chat=True), tokenizer)


def test_a_model_that_is_neither_here_nor_reached_is_one_line_at_once(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.is_reachable.cache_clear()
    with pytest.raises(
        ValueError, match="'some/body': it is not in the cache of this machine, and the hub"
    ) as e:
        load_model(ModelConfig(name_or_path="some/body", device="cpu"), seed=0)
    assert str(e.value).endswith("cannot be reached; give a folder with the model")
    assert models.is_known_only(ModelConfig(name_or_path="Qwen/Qwen3-8B"))
    assert not models.is_known_only(ModelConfig(name_or_path="some/body"))
    hub.is_reachable.cache_clear()


def test_a_known_model_can_be_planned_with_without_the_hub():
    config = ModelConfig(name_or_path="Qwen/Qwen3-0.6B", lora_rank=8)
    model, tokenizer = sketch_model(config, on_gpu=True, assumed=True)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    # q and o, k and v, the MLP's three
    ends = 28 * ((1024 + 2048) * 2 + (1024 + 1024) * 2 + (1024 + 3072) * 3)
    assert (trained, sum(p.numel() for p in model.parameters()) - trained) == (8 * ends, 596_049_920)
    assert tokenizer.encode("x" * 400, add_special_tokens=False) == [2] * 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("Qwen/Qwen3-1.7B-Base", 1.72e9),
        ("Qwen/Qwen3-4B-Instruct-2507", 4.02e9),
        ("Qwen/Qwen3-8B", 8.19e9),
        ("Qwen/Qwen2.5-0.5B", 0.49e9),
        ("Qwen/Qwen2.5-14B", 14.8e9),
        ("HuggingFaceTB/SmolLM2-1.7B-Instruct", 1.71e9),
    ],
)
def test_the_models_of_recipes_are_known_with_their_sizes(name, published):
    model, _ = sketch_model(ModelConfig(name_or_path=name), on_gpu=True, assumed=True)
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(published, rel=0.01)


def test_every_model_of_a_shipped_recipe_is_known():
    names = {load_config(Config, name).model.name_or_path for name in shipped_recipes()} - {None}
    assert not {name for name in names if known_settings(name) is None}


@pytest.fixture(scope="module")
def qwen3_folder(tmp_path_factory):
    """A bfloat16 checkpoint with the rotary base of Qwen3, and its own tokenizer."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    folder = tmp_path_factory.mktemp("qwen3")
    TOKENIZER.save_pretrained(folder)
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 1, "num_key_value_heads": 1}
    shape |= {"vocab_size": len(TOKENIZER), "intermediate_size": 96, "head_dim": 64, "initializer_range": 0.3}
    rotary = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "max_position_embeddings": 8192}
    torch.manual_seed(0)
    Qwen3ForCausalLM(Qwen3Config(**shape, **rotary)).to(torch.bfloat16).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("rank", [0, 4])
def test_a_loaded_model_is_the_one_that_others_load(qwen3_folder, rank):
    """Far out as well: a rotary frequency rounded to bfloat16 turns by radians at position 4,000."""
    from transformers import AutoModelForCausalLM

    config = ModelConfig(name_or_path=qwen3_folder, dtype="bfloat16", device="cpu", lora_rank=rank)
    ours, _ = load_model(config, seed=0)
    plain = AutoModelForCausalLM.from_pretrained(qwen3_folder, dtype=torch.bfloat16)
    tokens = torch.randint(0, len(TOKENIZER), (1, 4001), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        at_end = [model(input_ids=tokens, logits_to_keep=1).logits for model in (ours, plain)]
    assert torch.equal(*at_end)
    types = {name.removeprefix("base_model.model."): b.dtype for name, b in ours.named_buffers()}
    assert {name: b.dtype for name, b in plain.named_buffers()} == types


def test_the_weights_of_a_tiny_model_are_cast_and_no_buffer():
    model, _ = load_model(ModelConfig(tiny=TinyConfig(), dtype="bfloat16", device="cpu"), seed=0)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert {b.dtype for b in model.buffers()} == {torch.float32}


def test_a_folder_without_a_tokenizer_is_refused(tmp_path, make_tiny):
    """Transformers makes one up that knows no word, and would read nothing."""
    for one in make_tiny():
        one.save_pretrained(tmp_path)
    for path in tmp_path.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ValueError, match=r"cannot load .*: it has no tokenizer"):
        load_model(ModelConfig(name_or_path=str(tmp_path), device="cpu"), seed=0)
