"""Wiring only: no loops, no arithmetic, no I/O.

post_training   the pipeline; made of fine_tuning, reinforcement (twice) and scoring
judge           teach a ternary judge from human comparisons, beside a Bradley-Terry reward
evaluate        score any checkpoint on the held-out suites
retrain         learn from new rows, promote only through the gate
audit           prove a released model, back to the raw files
ledger          what each prompt cost and earned on the way to a model
pretrain        make the tiny base model
replay          repeat a step of RL from one file
mismatch        trainer against rollout engine, with and without router replay
ablation        each feature of RL off in turn
agreement       two verifiers of final answers side by side
seeds           the pipeline with three seeds, and what each checkpoint gained
capacity        the memory of one GPU under a layout
launch_plans    the presets of the pipeline under names, and what runs by the clock
"""
