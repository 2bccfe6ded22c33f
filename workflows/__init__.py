"""Wiring only: no loops, no arithmetic, no I/O.

post_training   the pipeline: most chains of `parts/chain.py`, of which the others take slices
curate          read, clean and decontaminate sources; one page of what became of them
judge           train a ternary judge on human comparisons, with a Bradley-Terry reward as baseline
distil          a teacher answers the problems; its right answers become demonstrations
verify_answers  several models solve the training problems: solve rates, and answers to look at
compare         two evaluations, or sample logs of lm-eval, item by item
evaluate        score checkpoints and endpoints on the same problems
retrain         learn from new rows, promote only through the gate
retrain_demo    five nights of it on a laptop, on one page
audit           prove a released model, back to the raw files
lineage         trace: which rows made a model, what a row touched; and compare, forget
ledger          what each prompt cost and contributed in the RL phases of a model
pretrain        make the tiny base model
replay          recompute a step of RL from its snapshot
agreement       compare two verifiers of final answers
recipe          a paper's recipe on the tiny model
capacity        the memory of one GPU under a layout
launch_plans    the pipeline's presets by name, and the scheduled runs

The laboratory has `lab/study` (variants of settings x seeds x models: one table, one page, one
evidence file), `lab/mismatch`, `lab/simulate`, and one more in `lab/recipes` for every recipe.
"""
