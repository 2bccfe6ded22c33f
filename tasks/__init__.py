"""The code of the pipeline, in floors. An arrow points down only.

    lab                  what reproduces one more paper, studies a question, simulates, or reads
                         others' dumps; nothing imports it
    stages               the Flyte shells of all stages: unpack, call, record, return
    retraining | settings
                         new rows every night: inbox, decisions, exactly once; settings from the
                         command line, and the one check whether they can run
    rl | evaluation | capacity
                         one step of RL and its replay; held-out suites; memory and time of a layout
    training             models made other than by RL: base model, fine-tuning, merge, judge
    curation             raw rows to problems and demonstrations; adapters; the sample world
    pages | durability   reports and live pages; states of an unfinished training
    provenance           what made this: statements, MLflow, rows, ledger, release, audit
    platform             what Flyte and the command line see
    engines              rollout engines and trainers behind Protocols
    models               what a model directory is: folder, weights, architectures
    formats              the files that stages hand to each other
    store                artifacts by content, in a folder or in S3
    gym                  verifiers, sandbox, judge, environments: a library without torch
    algorithms           formulas: pure functions on tensors and numbers
    cores | plugins      how many cores there are; code of a user's own, by name: found, checked,
                         hashed
    errors               who can act on a failure

Only `stages` and what lies above it knows Flyte's tasks. The contract `floors` in pyproject.toml is
the law; a test compares this map with it and with the folders.
"""
