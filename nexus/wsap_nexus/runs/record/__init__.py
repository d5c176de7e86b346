"""What a run records: its log, its trajectory hash, and totals made from them."""
