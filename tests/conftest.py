"""Small tokenizers and models that several test files use. torch is imported only where one is asked for."""

import asyncio
import gc
import io
import os
import resource
import signal
import sys
import warnings
from contextlib import asynccontextmanager, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
from hypothesis import settings

from debate.tools import Ran

CORPUS = [
    "user: What is 8 + 4? Tom has 8 apples and gets 4 more, so 8+4=12.",
    "<solution>8+4=12. \\boxed{12}</solution> <evaluation>K7 is right, Q2 isn't.</evaluation>",
    "naïve café, über; 日本語の文字; смешанный текст; émigré e\u0301; 👩‍🔬 😀 🇫🇷",
] * 5


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("laws", deadline=None, max_examples=50)  # a slow machine breaks no law
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("laws")


def pytest_collection_finish():
    """Spare what lives to the end of all tests from being looked through for garbage after each of them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory):
    """Keep what the tests cache out of the user's cache; return the folder."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def debate_command():
    """Return call(name, *arguments) -> the code and output of a command, run in this process."""
    from debate_rl.commands.main import run

    def call(name: str, *arguments: object) -> Ended:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["debate", *name.split(), *map(str, arguments)])
            patch.setattr(warnings, "formatwarning", warnings.formatwarning)  # ``run`` sets its own
            patch.setenv("COLUMNS", os.environ.get("COLUMNS", "200"))
            with pytest.raises(SystemExit) as ended:
                run()
        return Ended(ended.value.code or 0, out.getvalue(), err.getvalue())

    return call


@pytest.fixture(scope="session")
def corpus() -> list[str]:
    """A few lines in several scripts to train tokenizers on."""
    return CORPUS


@pytest.fixture
def files_of_at_most():
    """Return a context in which no file of this process grows beyond this many bytes, as on a full disk."""

    @contextmanager
    def limited(size):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture
def ends():
    """End a test that takes minutes to hours, as a quadratic rule does on a megabyte; a linear one ends."""

    def give_up(*_):
        pytest.fail("has not ended in ten minutes")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(600)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def make_tiny():
    """Return make(pieces=(), fallback="bytes", lora_rank=0, seed=0, **sizes) -> (model, tokenizer)."""
    from debate_rl.config.models import ModelConfig, TinyConfig
    from debate_rl.models import load_model

    def make(pieces=(), *, fallback="bytes", lora_rank=0, seed=0, **sizes):
        small = {"hidden_size": 32, "layers": 2, "heads": 4, "intermediate_size": 48}
        tiny = TinyConfig(fallback=fallback, init_std=0.3, **(small | sizes))
        config = ModelConfig(tiny=tiny, device="cpu", lora_rank=lora_rank)
        return load_model(config, vocabulary=pieces, seed=seed)

    return make


@pytest.fixture(scope="session", params=["byte_level_bpe", "unigram_bytes", "wordpiece", "wordlevel"])
def trained_tokenizer(request, corpus):
    """A real tokenizer of each type, trained here, with ChatML control tokens."""
    return _train(request.param, corpus)


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]


def _train(kind, corpus):
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = [AddedToken(text, normalized=False, special=True) for text in SPECIAL]
    if kind == "byte_level_bpe":
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=420,
            special_tokens=special,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
    elif kind == "unigram_bytes":
        backend = Tokenizer(models.Unigram())
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
        trainer = trainers.UnigramTrainer(
            vocab_size=120, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    elif kind == "wordpiece":
        backend = Tokenizer(models.WordPiece(unk_token="<unk>"))
        backend.normalizer = normalizers.NFC()
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    else:
        backend = Tokenizer(models.WordLevel(unk_token="<unk>"))
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer = trainers.WordLevelTrainer(vocab_size=80, special_tokens=special, show_progress=False)
    backend.train_from_iterator(corpus, trainer)
    if kind == "unigram_bytes":
        backend = _with_byte_fallback(backend)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="<|im_end|>",
        pad_token="</s>",
        additional_special_tokens=["<|im_start|>"],
        clean_up_tokenization_spaces=False,
    )
    tokenizer.add_tokens(
        [AddedToken(text, normalized=False, special=False) for text in ("<think>", "</think>")]
    )
    tokenizer.chat_template = CHATML
    return tokenizer


def _with_byte_fallback(backend):
    """Return the trained unigram model with the 256 byte tokens and Llama's decoder."""
    import json

    from tokenizers import AddedToken, Tokenizer, decoders, models

    state = json.loads(backend.to_str())["model"]
    pieces = [tuple(piece) for piece in state["vocab"]] + [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    fallback = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    fallback.pre_tokenizer = backend.pre_tokenizer
    fallback.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    fallback.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIAL])
    return fallback


def graded(debate, gold):
    """Return the grades of a debate of three agents and two rounds."""
    answers = {(turn.id.agent, turn.id.round): turn.parsed.answer for turn in debate.turns}
    rows = ([answers[agent, round_] for round_ in range(2)] for agent in range(3))
    return tuple(tuple("missing" if said is None else said == gold for said in row) for row in rows)


@pytest.fixture(scope="session")
def step_records():
    """Return make(step, count=6) -> the records of a step, different ones for each."""
    from debate import DebateConfig, Problem, run_debates
    from debate.policies.scripted import Answers, scripted_debaters
    from rewards import RewardConfig, score_debate
    from transcripts import Record

    config = DebateConfig(num_agents=3, num_rounds=2)

    @cache
    def make(step: int, count: int = 6) -> list[Record]:
        return list(records_of(step, count))

    def records_of(step: int, count: int):
        problems = [Problem(f"sum/{n}", f"What is {n} + 1?", str(n + 1), "sums") for n in range(count)]
        answers = {p.id: Answers(str(p.answer), ("5", "6")) for p in problems}
        policy = scripted_debaters(answers, solve=(0.7, 0.4, 0.5), judge=0.8, tokens=True)
        for debate in run_debates(problems, policy, config, seed=step):
            correct = graded(debate, debate.problem.answer)
            rewards = score_debate(debate, correct, RewardConfig())
            yield Record(debate, step, debate.problem.id, correct, rewards)

    return make


@pytest.fixture
def run(tmp_path, step_records):
    """Return a run folder with three steps, the last one not sealed."""
    from transcripts import write_step

    folder = tmp_path / "run"
    for step in range(3):
        write_step(folder / "transcripts", step, step_records(step), seal=step < 2)
    return folder


HOSTILE = (
    '<script>window.ran = 1; alert("ran")</script>',
    '"><img src=x onerror="window.ran=1">',
    "</title><svg onload=window.ran=1>",
    "</script><script>window.ran=1</script>",
    "</style></pre></details></main><h1>forged</h1>",
    "{{7*7}}{% for x in () %}{{ self.__init__.__globals__ }}",
    "<!--", "]]>", "&lt;b&gt;&#x3c;",
    "javascript:window.ran=1//",
    "' onmouseover='window.ran=1",
    "\x1b[2J\x1b]0;title\x07", "a\x00b", "\x9b31m", "line\rover",
    "\u202eright to left\u2066", "zero\u200bwidth\ufeff",
    "\ud800 lone \udfff",
)  # fmt: skip
"""What a model can write to break a page that shows it."""


@pytest.fixture(scope="session")
def hostile_texts() -> tuple[str, ...]:
    """Texts that must reach a page as text."""
    return HOSTILE


@pytest.fixture(scope="session")
def hostile_records():
    """Return make(step) -> records whose every free text is hostile; the first holds a line of a million."""
    from dataclasses import replace

    from debate import DebateConfig, Persona, Problem, run_debates
    from debate.policies.scripted import Answers, scripted_debaters
    from debate.types import FailureReason, ParseFailure, Span
    from debate.values import whole_text
    from rewards import RewardConfig, score_debate
    from transcripts import Record

    def spoil(turn, number):
        text = turn.completion.text
        bad = whole_text(HOSTILE[number % len(HOSTILE)])
        tail = (
            f"\n{whole_text(HOSTILE[(number + 5) % len(HOSTILE)])} {'x' * 1_000_000 if number == 1 else ''}"
        )
        failure = ParseFailure(FailureReason.NOT_A_COMPARISON, bad, Span(len(text), len(text) + len(tail)))
        parsed = replace(turn.parsed, failures=(*turn.parsed.failures, failure))
        if parsed.answer is not None:
            parsed = replace(parsed, answer=bad)
        return replace(turn, parsed=parsed, completion=replace(turn.completion, text=text + tail, offsets=()))

    def make(step: int) -> list[Record]:
        name = whole_text(HOSTILE[step % len(HOSTILE)])
        personas = tuple(Persona(f"{name} {seat}", "speak") for seat in range(3))
        problems = [
            Problem(f"{bad} {place}", f"{bad} What is 1 + 1?", bad, bad[:20], bad[:20])
            for place, bad in enumerate(map(whole_text, HOSTILE[step % 3 :: 3]))
        ]
        answers = {problem.id: Answers("2", ("5", "6")) for problem in problems}
        policy = scripted_debaters(answers, solve=(0.7, 0.4, 0.5), judge=0.8)
        config = DebateConfig(num_agents=3, num_rounds=2, personas=personas)
        found = []
        for debate in run_debates(problems, policy, config, seed=step):
            correct = graded(debate, "2")
            rewards = score_debate(debate, correct, RewardConfig())
            turns = tuple(spoil(turn, number + len(found)) for number, turn in enumerate(debate.turns))
            found.append(Record(replace(debate, turns=turns), step, debate.problem.id, correct, rewards))
        return found

    return make


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory, hostile_records):
    """Return the folder of a run of two steps in which every text is hostile. Its name is a hard one too."""
    from transcripts import write_step

    folder = tmp_path_factory.mktemp("runs") / "a run & 'more' <b>"
    for step in range(2):
        write_step(folder / "transcripts", step, hostile_records(step), tokens=False)
    (folder / "config.toml").write_text("[run]\n")
    return folder


@pytest.fixture
def judged_run(tmp_path, step_records):
    """Return a run whose judge was watched on pairs of hostile texts; after 7 steps it falls for all."""
    from debate.values import whole_text
    from debate_rl.judge_attack.pairs import JudgePair, Judgment, as_lines, folder_of, step_file
    from transcripts import write_step

    folder = tmp_path / "judged"
    write_step(folder / "transcripts", 0, step_records(0))
    texts = [whole_text(text) for text in HOSTILE]
    pairs = [JudgePair(f"{text} {n}", *[text] * 4, {"fake_check": text}) for n, text in enumerate(texts)]
    folder_of(folder).mkdir()
    (folder_of(folder) / "pairs.jsonl").write_bytes(as_lines(pairs))
    for step, attacked in ((0, "right"), (2, "right"), (7, "none")):
        said = [
            Judgment(number, attack, preferred, text)
            for number, text in enumerate(texts)
            for attack, preferred in (("plain", "right"), ("fake_check", attacked))
        ]
        step_file(folder, step).write_bytes(as_lines(said))
    return folder


class InProcess:
    """Programs that run in this process, for tests that know what they run; ``results`` replaces some."""

    def __init__(self):
        self.results, self.ran, self.open = {}, 0, 0

    @asynccontextmanager
    async def session(self):
        names = {}

        async def run(code):
            await asyncio.sleep(0)
            return self.result(code, names)

        self.open += 1
        try:
            yield SimpleNamespace(run=run)
        finally:
            self.open -= 1

    def result(self, code, names):
        self.ran += 1
        if code in self.results:
            return self.results[code]
        out = io.StringIO()
        try:
            with redirect_stdout(out):
                exec(code, names)
        except Exception as error:
            return Ran("error", out.getvalue(), f"{type(error).__name__}: {error}")
        return Ran("ok", out.getvalue())


@pytest.fixture
def programs():
    return InProcess()
