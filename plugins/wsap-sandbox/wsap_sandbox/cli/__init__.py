"""`wsap sandbox`: begin, run, read and change stories."""
