"""WSAP's games as Gymnasium and PettingZoo environments (`.envs`, `.multi`), and their environments as games."""
