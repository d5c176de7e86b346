"""One decision of a language model: what it is told and offered, how it is asked, and what its reply means."""
