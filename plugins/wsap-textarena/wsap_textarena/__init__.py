"""TextArena's games for WSAP's agents: `textarena:TicTacToe-v0`."""
