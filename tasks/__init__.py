"""The code of the pipeline, in floors. An arrow points down only.

    benchmarks           measures what the floors below do
    claims | scaffold | self_play
                         reads the reports of other stages
    mismatch | replay    run or repeat a phase of RL, with that stage's own functions
    intake | foundation | curation | synthesis | sft | judge_training | merge | rl | evaluation
        | ablation | release | ledger | tracing | retraining | report | capacity
                         one folder per stage; task.py is its thin Flyte shell
    audit | durability   a chain hashed again; signed states of an unfinished training
    lineage | live | platform
                         statements and MLflow; the page of a running phase; what Flyte sees
    rewards              one verifier per file, one table
    engines              rollout engines and trainers behind Protocols
    interchange          the records that stages hand to each other
    store                artifacts by content, in a folder or in S3
    algorithms | marketplace
                         formulas: pure functions on tensors and numbers; the sample world
    errors               who can act on a failure

Stages never import each other; what two of them need lies one floor lower. The contract `floors`
in pyproject.toml is the law; a test compares this map with it and with the folders.
"""
