"""The command `wsap play`."""
