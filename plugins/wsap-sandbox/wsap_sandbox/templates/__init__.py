"""World templates in TOML, and the bundled worlds."""
