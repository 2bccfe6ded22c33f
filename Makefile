# What a user and a developer calls; make help lists it. One environment (.venv) is built from lock_cpu.txt
# once and reused until the lock changes. Commands are printed, so that each line can also be run by hand.
#
# More targets: containers/environments.mk   environments of other locks, and the locks themselves
#               tests/suites.mk              tests and measurements that need them, or much time
#               workflows/runs.mk            the pipeline on public data and a pretrained model

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
TORCH := 2.13.0
# Without a GPU a CPU build of torch is taken where the index you configured has one; PyPI has CUDA
# builds only, which are 2.2 GB larger. To name an index that has one:
#     make run TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
GPU = $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes)
UV := 0.13.8
STAMP := $(VENV)/.ready-torch-$(TORCH)-lock-$(firstword $(shell cksum lock_cpu.txt))

# The first of these that is 3.11 or 3.12; to choose another: make run PYTHON=/path/to/python3.11
SUPPORTED := import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))
PYTHON ?= $(shell for python in python3.11 python3.12 python3 python; do \
	if $$python -c '$(SUPPORTED)' >/dev/null 2>&1; then echo $$python; break; fi; done)
PYTHON_FITS = $(shell $(or $(PYTHON),false) -c '$(SUPPORTED)' >/dev/null 2>&1 && echo yes)
PYTHON_FOUND = $(shell $(or $(PYTHON),python3) -c 'import sys; print(sys.version.split()[0])' 2>/dev/null)

# Arguments passed to the pipeline: make run ARGS="--sources gsm8k=train.jsonl --store elsewhere"
ARGS ?=

# The source tree takes precedence over any installed package called tasks or workflows.
export PYTHONPATH := $(CURDIR)
# One thread: on a busy machine several threads are slower, and results must not depend on the
# number of cores.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM := false
export HF_HUB_OFFLINE := 1
export DO_NOT_TRACK := 1
export MLFLOW_DISABLE_TELEMETRY := true
export FLYTE_SDK_LOGGING_LEVEL ?= 40

# Processes that share the suite. A file stays whole, so that what its tests share is made once. Each one
# more costs 20 CPU seconds before its first test: it imports and collects everything.
WORKERS ?= 2

.DEFAULT_GOAL := help
include containers/environments.mk

# make run ENGINES=real: vLLM and Megatron-core, not the embedded engines.
REAL_ENGINES := $(filter real,$(ENGINES))
CHOSEN_BIN := $(if $(REAL_ENGINES),$(ENGINES_VENV)/bin,$(BIN))
CHOSEN_STAMP := $(if $(REAL_ENGINES),$(ENGINES_STAMP),$(STAMP))

# pyflyte keeps only the last of several --settings: the engines, or yours, would be lost silently.
OWN_SETTINGS := $(strip $(if $(REAL_ENGINES),$(filter run,$(MAKECMDGOALS))) $(filter public real curate,$(MAKECMDGOALS)))
ifneq (,$(and $(OWN_SETTINGS),$(findstring --settings,$(ARGS))))
$(error make $(OWN_SETTINGS) passes settings of its own (see make -n), and only one --settings is \
	read: put their groups into yours, and call pyflyte or make run without ENGINES=real)
endif

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

# Warnings of libraries are off: missing GPU packages (Apex, Transformer Engine) fill the screen.
run: $(CHOSEN_STAMP) ## raw rows to a released model; ENGINES=real
	$(if $(REAL_ENGINES),EACHPROMPT_PROCESSES=2 PYTHONWARNINGS=ignore) $(CHOSEN_BIN)/pyflyte run workflows/post_training.py post_training \
		$(if $(REAL_ENGINES),--settings workflows/examples/real_engines.yaml) $(ARGS)

include workflows/runs.mk

test: $(STAMP) ## style, types, contracts and daily tests; WORKERS=2
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -j 2 types suite

# The marks of pyproject.toml, without "not slow" and "not tools": what needs neither a service nor a large environment.
ALL = $(shell sed -n "s/ and not tools//; s/^addopts = .* -m 'not slow and \(.*\)'\"$$/\1/p" pyproject.toml)

test-all: $(STAMP) $(TOOLS_STAMP) ## also the slow tests: all that needs no services
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory types
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m '$(ALL)' $(ARGS)

# Formulas, settings, merges, ledger and the verifiers that start nothing: no process, no server, no model.
QUICK := tests/algorithms tests/test_settings.py tests/test_addresses.py tests/training/merge tests/provenance/ledger \
	tests/curation/marketplace tests/gym/maths tests/gym/tools \
	tests/gym/test_choice.py tests/gym/test_extraction.py tests/gym/test_refusal.py

quick: $(STAMP) ## ruff and quick tests, in less than a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not slow and not gpu and not mergekit and not hypothesis' $(QUICK) $(ARGS)

suite: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

# One process for two minutes: make test runs it beside the suite.
types: $(STAMP)
	$(BIN)/lint-imports
	$(BIN)/basedpyright --pythonpath $(BIN)/python

# A study is a declaration in workflows/lab/studies, or of your own: make study OF=mine.yaml
# Two presets or settings files: make study OF=mine.yaml AGAINST=laptop SEEDS=3
OF ?= workflows/lab/studies/ladder.yaml
AGAINST ?=
# A study has its own unless SEEDS is given.
SEEDS ?= 3
GIVEN_SEEDS = $(if $(filter command environment,$(origin SEEDS)),--seeds $(SEEDS))

study: $(STAMP) ## variants of settings over seeds, in one table: OF=file
	$(BIN)/pyflyte run workflows/lab/study.py study --of $(OF) $(if $(AGAINST),--against $(AGAINST)) $(GIVEN_SEEDS) $(ARGS)

NAME ?= ladder
STUDIES := $(basename $(notdir $(wildcard workflows/lab/studies/*.yaml)))

# Beside the studies, NAME=trl runs the two comparisons with TRL, NAME=claims renders what was measured.
# make -n runs every line that has $(MAKE) in it: a study stands on a line of its own.
evidence: $(STAMP) ## a study, kept in docs/evidence: NAME=ladder SEEDS=1
	$(if $(filter $(NAME),$(STUDIES) trl claims),,\
		$(error NAME=$(NAME) is no study. Use one of: $(STUDIES) trl claims))
	$(if $(filter trl,$(NAME)),$(MAKE) bench-rl ARGS="8 1 --out tests/bench/rl_step.json" \
		&& $(MAKE) bench-resume ARGS="--points 50")
	$(if $(filter trl claims,$(NAME)),$(MAKE) docs)
	$(if $(filter $(NAME),$(STUDIES)),\
		$(BIN)/pyflyte run workflows/lab/study.py study --of workflows/lab/studies/$(NAME).yaml \
		$(GIVEN_SEEDS) --evidence docs/evidence $(ARGS))

docs: $(STAMP) ## render the numbers in all pages from docs/evidence
	$(BIN)/python -m tasks.lab.study.documents $(ARGS)

findings: ## scripts that show surprises of the libraries
	@for script in findings/*.sh; do echo "$$script"; $$script || exit 1; done

include tests/suites.mk

clean: ## remove the environments and the tools' caches; runs/ stays
	rm -rf $(VENV) $(ENGINES_VENV) $(TOOLS_VENV) $(GPU_VENV) $(MERGEKIT_VENV) $(ENVIRONMENTS_VENV) $(VERIFIERS_VENV) $(FLYTE2_VENV) $(CUDA_VENV) .pytest_cache .ruff_cache .import_linter_cache .hypothesis

.PHONY: $(shell sed -n 's/^\([a-z][a-z0-9-]*\):.*/\1/p' $(MAKEFILE_LIST))
