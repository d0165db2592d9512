"""Text files, line by line."""
