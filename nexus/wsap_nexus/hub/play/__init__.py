"""Play in worlds: sessions, worlds that live, their seats, and failures of both."""
