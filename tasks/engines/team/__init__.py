"""One stage in several processes: rank 0 is the controller, the other ranks are workers.

rank_info  rank and world size of this process, from torchrun's environment
failure_store  which rank failed and why; ends processes that would wait forever
wire       commands to all ranks
payloads   records and tensors between ranks: rollouts, shares of a batch, weights
member     one process: its groups, and the engines it holds
controller  rank 0: sends commands and receives replies
worker     the other ranks: execute commands until the controller ends the team
trainer    a Trainer over all ranks, used from the controller
rollout    one RolloutEngine over the engines of several ranks, used from the controller
"""
