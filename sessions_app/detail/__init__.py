"""What the page of one session shows, read from rows with a fixed number of queries."""
