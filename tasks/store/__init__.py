"""Content-addressed artifacts: the Store interface, local and S3 stores, files and manifests."""
