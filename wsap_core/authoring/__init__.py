"""The authoring kit: base classes that take over what most games have in common."""
