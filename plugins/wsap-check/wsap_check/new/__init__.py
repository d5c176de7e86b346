"""The command `wsap new`: a package of one's own, from a template."""
