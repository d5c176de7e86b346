"""JSON Schemas and regular expressions for constrained decoding."""
