"""The world as a game of the protocol: bodies, seats, observations, transit and snapshots."""
