"""The kernel's own parts, registered through the same hooks as everyone's."""
