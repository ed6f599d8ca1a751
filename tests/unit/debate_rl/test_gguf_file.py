"""Models in GGUF files, written here by the package of llama.cpp."""

import json
from copy import deepcopy

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.convert_slow_tokenizer import bytes_to_unicode

from debate_rl.config import Config
from debate_rl.config.models import ModelConfig
from debate_rl.engines import _open_engine, _vllm_beside
from debate_rl.evaluation.folder import _files
from debate_rl.gguf_file import gguf_file
from debate_rl.models import load_model, sketch_model
from debate_rl.runs.export import _write_weights

gguf = pytest.importorskip("gguf", reason="the extra gguf is not installed")

HEADS, KV_HEADS, HIDDEN = 4, 2, 32
TOKENS = [*bytes_to_unicode().values(), "12", "<|endoftext|>"]
END = len(TOKENS) - 1
CHAT = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] }}{% endfor %}"
LAYER = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
LAYER |= {"attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj"}
LAYER |= {f"ffn_{name}": f"mlp.{name}_proj" for name in ("gate", "up", "down")}


def tiny_llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"vocab_size": len(TOKENS), "hidden_size": HIDDEN, "intermediate_size": 48}
    layers = {"num_hidden_layers": 2, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS}
    rest = {"max_position_embeddings": 64, "rms_norm_eps": 1e-5, "eos_token_id": END}
    return LlamaForCausalLM(LlamaConfig(**sizes, **layers, **rest)).eval()


def interleaved(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Return rows in the order of llama.cpp, which turns neighbours where transformers turns halves."""
    return weight.view(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def tensors_of(model: LlamaForCausalLM) -> dict[str, torch.Tensor]:
    found = model.state_dict()
    tensors = {
        "token_embd.weight": found["model.embed_tokens.weight"],
        "output_norm.weight": found["model.norm.weight"],
        "output.weight": found["lm_head.weight"],
    }
    for layer in range(model.config.num_hidden_layers):
        own = f"model.layers.{layer}."
        query, key = (found[f"{own}self_attn.{name}_proj.weight"] for name in "qk")
        tensors[f"blk.{layer}.attn_q.weight"] = interleaved(query, HEADS)
        tensors[f"blk.{layer}.attn_k.weight"] = interleaved(key, KV_HEADS)
        for ours, theirs in LAYER.items():
            tensors[f"blk.{layer}.{ours}.weight"] = found[f"{own}{theirs}.weight"]
    return tensors


def write(path, model: LlamaForCausalLM, *, arch: str = "llama", without: str = "") -> None:
    writer, settings = gguf.GGUFWriter(path, arch), model.config
    writer.add_context_length(settings.max_position_embeddings)
    writer.add_embedding_length(settings.hidden_size)
    writer.add_block_count(settings.num_hidden_layers)
    writer.add_feed_forward_length(settings.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(settings.rms_norm_eps)
    writer.add_rope_freq_base(settings.rope_parameters["rope_theta"])
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([gguf.TokenType.NORMAL] * END + [gguf.TokenType.CONTROL])
    writer.add_token_merges(["1 2"])
    writer.add_eos_token_id(END)
    writer.add_chat_template(CHAT)
    for name, tensor in tensors_of(model).items():
        if name != without:
            writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    model, path = tiny_llama(), tmp_path_factory.mktemp("gguf") / "tiny.F32.gguf"
    write(path, model)
    return model, path


def config_of(path, **others: object) -> ModelConfig:
    return ModelConfig.model_validate({"name_or_path": str(path), "device": "cpu"} | others)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_file_is_the_model_that_it_was_written_from(written, dtype):
    whole, path = written
    model, tokenizer = load_model(config_of(path, dtype=dtype), seed=0)
    assert {parameter.dtype for parameter in model.parameters()} == {getattr(torch, dtype)}
    assert all(parameter.requires_grad for parameter in model.parameters())
    ids = torch.tensor([tokenizer("12 + 2 =")["input_ids"]])
    assert ids.tolist() == [[TOKENS.index(piece) for piece in ("12", "Ġ", "+", "Ġ", "2", "Ġ", "=")]]
    same = deepcopy(whole)
    for weight in same.parameters():  # a file of float32 loses nothing but by this rounding
        weight.data = weight.data.to(getattr(torch, dtype))
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, same(ids).logits, rtol=0, atol=1e-6)
    assert tokenizer.chat_template == CHAT
    assert tokenizer.eos_token == "<|endoftext|>"


def test_the_folder_of_one_file_is_that_file_and_is_saved_as_a_plain_folder(written, tmp_path):
    whole, path = written
    model, tokenizer = load_model(config_of(path.parent), seed=0)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, _ = load_model(config_of(tmp_path), seed=0)
    for name, weight in whole.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight), name


def test_a_plan_needs_no_tensors_and_an_adapter_learns_on_it(written):
    whole, path = written
    sketch, tokenizer = sketch_model(config_of(path), on_gpu=False)
    assert sum(p.numel() for p in sketch.parameters()) == sum(p.numel() for p in whole.parameters())
    assert sketch.device.type == "meta"
    assert len(tokenizer) == len(TOKENS)
    adapter, _ = load_model(config_of(path, lora_rank=2), seed=0)
    assert any("lora_A" in name for name, _ in adapter.named_parameters())


def test_a_folder_of_several_files_or_a_missing_one_is_one_line(tmp_path):
    for name in ("a.gguf", "b.GGUF"):
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=r"contains 2 GGUF files; .*a\.gguf$"):
        gguf_file(str(tmp_path))
    with pytest.raises(ValueError, match=r"there is no file 'none\.gguf'"):
        gguf_file("none.gguf")
    (tmp_path / "config.json").touch()
    assert gguf_file(str(tmp_path)) is None
    assert gguf_file("Qwen/Qwen3-8B") is None


def test_a_folder_whose_name_ends_like_a_file_is_a_folder(tmp_path):
    folder = tmp_path / "model.gguf"
    folder.mkdir()
    assert gguf_file(str(folder)) is None  # and not "there is no file"
    (folder / "inner.gguf").mkdir()
    assert gguf_file(str(folder)) is None
    (folder / "weights.gguf").touch()
    assert gguf_file(str(folder)) == folder / "weights.gguf"


def refused(config: ModelConfig) -> str:
    with pytest.raises((ValueError, ImportError)) as raised:
        load_model(config, seed=0)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.999])
def test_a_file_that_is_cut_off_is_refused_with_and_without_its_data(written, tmp_path, share):
    path = tmp_path / "cut.gguf"
    content = written[1].read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert "is incomplete, damaged or not a GGUF file" in (said := refused(config_of(path)))
    assert said.endswith("download it again")
    with pytest.raises(ValueError, match="incomplete"):
        sketch_model(config_of(path), on_gpu=False)


@pytest.mark.parametrize(("kind", "size"), [(4, 4), (10, 8)])  # 32 and 64 bits
def test_a_header_of_endless_layers_is_refused_before_settings_are_made_of_it(written, tmp_path, kind, size):
    content, key = written[1].read_bytes(), b"llama.block_count"
    start = content.index(key) + len(key)
    path = tmp_path / "deep.gguf"
    layers = kind.to_bytes(4, "little") + (2**31 - 1).to_bytes(size, "little")
    path.write_bytes(content[:start] + layers + content[start + 8 :])
    assert "its header claims 2147483647 layers but only 21 tensors" in refused(config_of(path))


def test_another_architecture_and_a_missing_tensor_are_refused(written, tmp_path):
    path = tmp_path / "other.gguf"
    write(path, written[0], arch="mystery")
    said = refused(config_of(path))
    assert "transformers cannot unpack" in said
    assert "mystery" in said
    assert said.endswith("give the same model as a folder or a hub id")
    write(path, written[0], without="blk.1.ffn_up.weight")
    assert "lacks model.layers.1.mlp.up_proj.weight" in refused(config_of(path))


def test_without_the_package_a_line_says_how_to_install_it(written, monkeypatch):
    monkeypatch.setattr("debate_rl.gguf_file.find_spec", lambda name: None)
    said = refused(config_of(written[1]))
    assert said.endswith('which is not installed: pip install ".[gguf]" in the folder of the source')


def test_a_packed_base_is_not_packed_again(written, monkeypatch):
    monkeypatch.setattr("debate_rl.models.refuse_unquantizable", lambda *_: None)
    monkeypatch.setattr("debate_rl.models.loading_settings", lambda *_: {"quantization_config": None})
    said = refused(config_of(written[1], quantization="4bit", lora_rank=2))
    assert said.startswith('model.quantization = "4bit": a GGUF file is unpacked to full weights')


def whole_config(path, **model: object) -> Config:
    return Config.model_validate({"model": {"name_or_path": str(path), "device": "cpu"} | model})


def test_the_export_of_an_adapter_has_its_base_beside_it(written, tmp_path):
    config = whole_config(written[1], lora_rank=2)
    adapter, _ = load_model(config.model, seed=0)
    _write_weights(adapter, tmp_path, config, "adapter", tmp_path / "out", None)
    facts = json.loads((tmp_path / "adapter_config.json").read_text())
    assert facts["base_model_name_or_path"] == str(tmp_path / "out" / "base")
    base = LlamaForCausalLM.from_pretrained(tmp_path / "base").state_dict()
    assert all(torch.equal(base[name], weight) for name, weight in written[0].state_dict().items())


class Loaded:
    version = 0

    async def update(self, weights, version):
        self.loaded = weights


def test_vllm_is_given_the_unpacked_weights_and_servers_are_refused(written, monkeypatch):
    monkeypatch.setattr("debate_rl.engines._make_engine", lambda config, learners: (learners, None, Loaded()))
    made = _open_engine(whole_config(written[1], policy="vllm"), None)
    assert made.loaded == 1  # as a tiny model's are, and not by the name
    served = whole_config(written[1], policy="vllm", vllm={"servers": ["http://localhost:8000/v1"]})
    with pytest.raises(ValueError, match=r"model.vllm.servers:"):
        _vllm_beside(served, None, None, 1)


def test_an_evaluation_knows_the_file_by_name_size_and_time(written):
    path = written[1]
    assert _files(path) == [[path.name, path.stat().st_size, path.stat().st_mtime_ns]]
    assert _files(path.with_name("owner") / "name") == []
