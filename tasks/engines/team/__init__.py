"""One stage in several processes: rank 0 runs it, the others do what it says.

place      where this process stands, from torchrun's environment
board      who failed and why; ends processes that would wait for ever
wire       objects and tensors between ranks
member     one process: its groups, and the engines it holds
controller     rank 0: commands go out, replies come in
worker   the other ranks: take commands until told to stop
trainer    a Trainer on all ranks, seen from the controller
rollout    RolloutEngines on some ranks, seen from the controller as one
"""
