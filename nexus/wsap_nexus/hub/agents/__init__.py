"""What agents do between worlds: the nexus as a place, and their memories, talk and diaries."""
