"""What is checked and set when a database is opened, in a file or on a server."""
