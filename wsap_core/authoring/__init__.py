"""The authoring kit: base classes with what most games have in common."""
