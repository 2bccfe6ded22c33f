"""Rollout engines and trainers behind Protocols. They choose no algorithm.

protocols         the interfaces RolloutEngine and Trainer
select            opens the engines that the settings name
embedded          transformers and plain torch in this process: the default
rollout_vllm      vLLM, in process or in a watched process of its own
partial_batch     the part of a batch that a rank holds
trainer_megatron  Megatron-core over any layout, with Router Replay
team              one stage in several processes: rank 0 is the controller
"""
