"""States of a training run that was not finished: commits, uploads, SIGTERM. Not what a stage
saves in them: that is the stage's."""
