"""OpenSpiel's games for WSAP's agents: `openspiel:kuhn_poker`."""
