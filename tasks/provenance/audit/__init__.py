"""Walk back from a release to its raw rows and re-hash everything."""
