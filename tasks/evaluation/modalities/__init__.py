"""Answers of multimodal models to multiple-choice questions, by what they saw and heard."""
