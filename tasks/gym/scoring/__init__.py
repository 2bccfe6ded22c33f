"""The service that scores rollouts as they finish."""
