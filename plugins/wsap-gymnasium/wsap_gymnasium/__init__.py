"""WSAP's games as Gymnasium environments (`wsap_gymnasium.envs`), and Gymnasium environments as games."""
