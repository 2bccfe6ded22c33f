"""AV-SpeakerBench: what sound and sight add to each other."""
