"""The built-in choices by name: each is a file, and a line here.

The command line refuses a misspelt name before torch is loaded, so that this file loads nothing:
the tables of the choices import what is named.
"""

LOSSES = {
    "espo": "tasks.algorithms.losses.espo:ESPO",
    "gspo": "tasks.algorithms.losses.gspo:GSPO",
    "grpo": "tasks.algorithms.losses.grpo:GRPO",
    "dr_grpo": "tasks.algorithms.losses.dr_grpo:DrGRPO",
    "dapo": "tasks.algorithms.losses.dapo:DAPO",
    "cispo": "tasks.algorithms.losses.cispo:CISPO",
    "sapo": "tasks.algorithms.losses.sapo:SAPO",
    "gmpo": "tasks.algorithms.losses.gmpo:GMPO",
    "luspo": "tasks.algorithms.losses.luspo:LUSPO",
    "dppo": "tasks.algorithms.losses.dppo:DPPO",
    "dppo_kl": "tasks.algorithms.losses.dppo:DPPOKL",
}
PAIR_LOSSES = {
    "dpo": "tasks.algorithms.losses.dpo:EqualTokens",
    "otpo": "tasks.algorithms.losses.otpo:TransportedTokens",
}
ADVANTAGES = {
    "of_loss": "tasks.algorithms.advantages.of_loss:LossAdvantage",
    "grpo": "tasks.algorithms.advantages.grouped:GroupAdvantage",
    "centred": "tasks.algorithms.advantages.centred:CentredAdvantage",
    "rloo": "tasks.algorithms.advantages.rloo:RLOO",
    "maxrl": "tasks.algorithms.advantages.maxrl:MaxRL",
}
MERGE_METHODS = {
    "ties": "tasks.algorithms.merging.ties:Ties",
    "ties_model": "tasks.algorithms.merging.ties:ModelTies",
    "linear": "tasks.algorithms.merging.linear:LinearMerge",
    "task_arithmetic": "tasks.algorithms.merging.linear:TaskArithmetic",
    "dare_ties": "tasks.algorithms.merging.dare:DareTies",
    "dare_linear": "tasks.algorithms.merging.dare:DareLinear",
    "slerp": "tasks.algorithms.merging.slerp:Slerp",
}
TERMS = {
    "rl_zvp": "tasks.algorithms.terms.rl_zvp:RLZVP",
    "token_budget": "tasks.algorithms.terms.token_budget:TokenBudget",
    "tis": "tasks.algorithms.terms.tis:TIS",
    "icepop": "tasks.algorithms.terms.icepop:IcePop",
    "stale": "tasks.algorithms.terms.stale:Stale",
    "kl": "tasks.algorithms.terms.kl:KL",
    "entropy": "tasks.algorithms.terms.auxiliary:Entropy",
    "balance": "tasks.algorithms.terms.auxiliary:Balance",
    "router_z": "tasks.algorithms.terms.auxiliary:RouterZ",
}
SKIPS = {
    "threshold": "tasks.algorithms.skips.threshold:SkipThreshold",
    "draw": "tasks.algorithms.skips.draw:SkipDraw",
}
