"""The nouns of the pipeline; imports nothing else of ours.

prompts         Problem, Message: one verifiable piece of work (written by curation)
demonstrations  Demonstration: one worked response for SFT (written by curation)
raw_files       RawFile: one raw file by content (written by ingestion)
quarantine      Quarantined: one refused item with its reason
graded          GradedProblem: a Problem with the start model's pass rate (written by grading)
rollouts        Rollout, RouterTrace, RolloutGroup: what the policy said and which experts it used
verdicts        Verdict: a score with its reason, or an abstention with its reason
artifacts       CheckpointRef, DatasetRef, ReportRef, StoreRef, Execution: what Flyte tasks pass on
samples         SampleResult: one evaluated response with its verdict (written by evaluation)
intake          InboxFile, Watermark, Intake, Decision: what retraining found and decided
statements      Statement: which code and inputs made which outputs (one per executed stage)
reports         StepReport, EvaluationReport, StageReport, ReleaseManifest
audits          AuditReport, Finding: what an audit of the chain found
settings        one frozen model per stage; rl_settings those of RL
machine_settings  which engines a stage runs on, in what numbers, over how many GPUs
arrow           record class to pyarrow schema and back; names the bad row
"""
