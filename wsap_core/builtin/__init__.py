"""The kernel's own game, agents and commands, registered through the same hooks as any plugin's."""
