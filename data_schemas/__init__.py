"""The nouns of the pipeline; imports nothing else of ours.

prompts         Problem, Message: one verifiable piece of work (written by curation)
demonstrations  Demonstration: one worked response for SFT (written by curation)
raw_files       RawFile: one raw file by content (written by ingestion)
quarantine      QuarantinedItem: one refused item with its reason
annotations     Annotation, AppliedDecision: what people decide about a doubtful gold answer
graded          GradedProblem: a Problem with the start model's pass rate (written by grading)
rollouts        Rollout, RouterTrace, RolloutGroup: sampled responses and their expert choices
verdicts        Verdict: a score with its reason, or an abstention with its reason
artifacts       CheckpointRef, DatasetRef, ReportRef, StoreRef, Execution: passed between tasks
samples         SampleResult: one evaluated response with its verdict (written by evaluation)
intake          InboxFile, Processed, Intake, Decision: new raw files and the retraining decision
statements      Statement: which code and inputs made which outputs (one per executed stage)
reports         StepReport, EvaluationReport, StageReport, ReleaseManifest
audits          AuditReport, Finding: what an audit of the chain found
settings        one frozen model per stage; those of RL are in rl_settings
machine_settings  the engines of a stage: kind, precision and parallel layout
arrow           record class to pyarrow schema and back; names the bad row
"""
