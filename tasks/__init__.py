"""The code of the pipeline, in floors. An arrow points down only.

    recipes              one folder a paper, on the seams that anybody may use
    benchmarks           measures what the floors below do
    claims               reads the reports of other stages
    mismatch | replay    run or repeat a phase of RL, with that stage's own functions
    intake | foundation | curation | sft | judge_training | merge | rl | evaluation
        | ablation | release | audit | ledger | tracing | retraining | report | capacity
                         one folder per stage; task.py is its thin Flyte shell
    durability | lineage | live | platform
                         states of an unfinished training; statements and MLflow; the page of a
                         running phase; what Flyte sees
    rewards              one verifier per file, one table
    engines              rollout engines and trainers behind Protocols
    interchange          the records that stages hand to each other
    store                artifacts by content, in a folder or in S3
    algorithms | marketplace
                         formulas: pure functions on tensors and numbers; the sample world
    plugins              code that a name in settings or rows refers to
    errors               who can act on a failure

Stages never import each other; what two of them need lies one floor lower. The contract `floors`
in pyproject.toml is the law; a test compares this map with it and with the folders.
"""
