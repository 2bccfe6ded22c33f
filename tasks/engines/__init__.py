"""Machines behind Protocols: rollout engines and trainers. They choose no algorithm.

protocols         what a RolloutEngine and a Trainer promise
select            from settings to engine; everything else opens engines through it
rollout_hf        transformers, the embedded default (with rollout_draw, rollout_moe, rollout_slots)
rollout_vllm      vLLM, in process or in a watched process of its own
trainer_torch     plain torch, the embedded default (with packed_attention, router_*)
partial_batch     what a rank holds of a batch that is divided over ranks
trainer_megatron  Megatron-core over any layout, with Router Replay
team              one stage in several processes: rank 0 leads
"""
