"""Games as OpenEnv environments for trainers, and OpenEnv environments as games."""
