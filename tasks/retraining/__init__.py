"""Retraining on new data, up to a promoted model or the reason for a refusal."""
