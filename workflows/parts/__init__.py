"""Part-workflows that entry points share."""
