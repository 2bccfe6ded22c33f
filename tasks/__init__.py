"""The code of the pipeline, in floors. An arrow points down only.

    replay       repeats a step of RL with that stage's own functions
    stages       one folder each: intake, foundation, curation, sft, merge, rl, evaluation,
                 release, audit, ledger, retraining, report
    shells       lineage | resources | progress   (meant for task.py)
    rewards      one verifier per file
    engines      rollout engines and trainers behind Protocols
    remote       the artifact store when it is not a local folder
    algorithms   formulas: pure functions on tensors and numbers
    storage      atomic writes, digests, the artifact store
    errors       who can act on a failure

Stages never import each other; what two of them need lies one floor lower.
"""
