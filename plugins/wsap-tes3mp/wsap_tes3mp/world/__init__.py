"""The nexus world `morrowind`: avatars, actions and observations on top of a bridge."""
