"""World templates: TOML files that a person writes, and the worlds that come with the plugin."""
