# What make test leaves out: tests that need an environment of their own or much time, and measurements.

# The marks of pyproject.toml, with slow instead of "not slow".
SLOW = $(shell sed -n "s/^addopts = .* -m 'not \(slow .*\)'\"$$/\1/p" pyproject.toml)

# What takes minutes, and MLflow's tests on a real server
test-slow: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m '$(SLOW)' $(ARGS)

# The property tests on new random examples, ten times as many
laws: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) -m hypothesis --hypothesis-profile laws $(ARGS)

# What needs vLLM and Megatron-core, in a separate environment
test-engines: $(ENGINES_STAMP)
	$(ENGINES_VENV)/bin/python -m pytest -m engines $(ARGS)

# Read a release as anybody would: OpenSSF's model-signing, securesystemslib, CycloneDX, mlcroissant.
# What public tools say about signatures, bill of materials and data set
test-tools: $(STAMP) $(TOOLS_STAMP)
	$(BIN)/python -m pytest -m tools $(ARGS)

# Every merge against mergekit's, tensor by tensor
test-mergekit: $(STAMP) $(MERGEKIT_STAMP)
	$(BIN)/python -m pytest -m mergekit $(ARGS)

# The pipeline on Flyte 2 by its migration, beside the same on Flyte 1
test-flyte2: $(STAMP) $(FLYTE2_STAMP)
	$(BIN)/python -m pytest -m flyte2 tests/test_flyte_2.py $(ARGS)

# What vLLM for CUDA makes of every preset, without a GPU (8 GB)
test-cuda-wheels: $(STAMP) $(CUDA_STAMP)
	$(BIN)/python -m pytest -m cuda_wheels $(ARGS)

# Unmodified environments of verifiers and OpenEnv; BFCL by state
test-environments: $(STAMP) $(ENVIRONMENTS_STAMP) $(VERIFIERS_STAMP)
	$(BIN)/python -m pytest -m environments $(ARGS)

# As root, with Debian's mmdebstrap. Not built in full: the GPU images, whose packages are only resolved.
# The lines of every Dockerfile in a Debian root, without Docker; needs root
test-images: $(STAMP)
	$(BIN)/python -m pytest -m images tests/test_images.py $(ARGS)

# Release, retrain, refuse, forget, tamper: each audited, as one page in runs/story.html
story: $(STAMP) $(TOOLS_STAMP)
	$(BIN)/python -m pytest -m story tests/test_story.py tests/test_retrain_demo.py tests/test_ten_nights.py $(ARGS)
	@echo "Page: runs/story.html"

# Every forgery, tampering and kill of the suite, and a table of what held
attack: $(STAMP)
	$(BIN)/python -m tests.attack $(ARGS)

# Verdicts per second, and time that rewards add to a step
bench-rewards: $(STAMP)
	$(BIN)/python -m tests.bench.rewards $(ARGS)

# Row lineage on a million rows and a thousand runs, and how fast the audit reads
bench-lineage: $(STAMP)
	$(BIN)/python -m tests.bench.lineage $(ARGS)

# A TIES merge of 4 GiB against the disk's speed and, if it is installed, mergekit
bench-merge: $(STAMP)
	$(BIN)/python -m tests.bench.merging $(if $(wildcard $(MERGEKIT_VENV)/bin/python),--mergekit $(MERGEKIT_VENV)/bin/python) $(ARGS)

# datatrove and rensa remove duplicates from the same rows if an environment has them
# (tests/bench/curation/command.py describes how to create it):
#     make bench-curation DATA=folder ARGS="--python .venv-curation/bin/python --sizes 10000"
# Rows per CPU second and memory of curation, beside datatrove and rensa
bench-curation: $(STAMP)
	$(BIN)/python -m tests.bench.curation.command $(DATA) $(ARGS)

# One RL step against TRL's GRPOTrainer, on the same model and prompts
bench-rl: $(STAMP)
	$(BIN)/python -m tests.bench.rl_step $(ARGS)

# Kill and stop the whole pipeline in every stage; goes on in FOLDER: ARGS="--chains 12"
bench-kills: $(STAMP)
	$(BIN)/python -m tests.bench.kills.command --folder $(or $(FOLDER),runs/kills) $(ARGS)

# Kill and resume a small RL job of ours and of TRL: ARGS="--points 50"
bench-resume: $(STAMP)
	$(BIN)/python -m tests.bench.resume.command $(ARGS)

# vLLM, Megatron-core, the embedded engines and generate compared
bench-engines: $(STAMP)
	$(if $(wildcard $(ENGINES_VENV)/bin/python),$(ENGINES_VENV)/bin,$(BIN))/python -m tests.bench.engines $(ARGS)

CASES ?= 100000

# Every verifier on answers known to be right or wrong; ARGS=--classes
examine: $(STAMP)
	$(BIN)/python -m tests.examiner.command $(DATA) --cases $(CASES) $(ARGS)

EXAMINER ?= .venv-examiner/bin/python

# Our verdicts and lm-evaluation-harness's on the same responses: make agree DATA=folder
agree: $(STAMP)
	$(BIN)/python -m tests.bench.harness.command $(DATA) --python $(EXAMINER) $(ARGS)

# Embedded engines only, unless make gpu-environment was run. Call it again until nothing is left.
# The first hour on a GPU, resumable, in slices of 8 minutes, as JSON in runs/first_gpu
gpu: $(STAMP)
	$(if $(wildcard $(GPU_STAMP)),$(GPU_VENV)/bin/python -m tests.bench.first_gpu --tier 2,$(BIN)/python -m tests.bench.first_gpu) $(ARGS)

# vLLM, Megatron-core and Transformer Engine for CUDA (never run on a GPU yet)
gpu-environment: $(GPU_STAMP)

# PostgreSQL, MLflow with a password and S3 on loopback, in .stack; prints how to use them
stack: $(STAMP)
	@$(BIN)/python containers/stack.py up

stack-down: $(STAMP)
	@$(BIN)/python containers/stack.py down

# Outages, and compiled workflows pod by pod, on such a stack of its own
test-stack: $(STAMP)
	$(BIN)/python -m pytest -m stack tests/test_stack.py tests/test_cluster.py tests/test_rehearsal.py $(ARGS)

ENDPOINT ?=

# The contract of stores on any S3: ENDPOINT=https://s3.example
test-s3: $(STAMP)
	$(if $(ENDPOINT),,$(error name the service, and put its keys into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: \
		make test-s3 ENDPOINT=https://s3.example))
	EACHPROMPT_TEST_S3=$(ENDPOINT) $(BIN)/python -m pytest tests/store/test_interface.py tests/store/test_lease.py -k s3 $(ARGS)
