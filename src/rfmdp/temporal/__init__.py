"""Path formulas and automata: what a play has to do over time, as memory beside the state."""
