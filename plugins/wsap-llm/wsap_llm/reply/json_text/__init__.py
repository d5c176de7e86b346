"""Values of JSON in what a model writes, repaired and compared with a schema."""
