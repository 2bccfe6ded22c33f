"""How the bytes of tables become cells: by format; what a row is, `rows` says."""
