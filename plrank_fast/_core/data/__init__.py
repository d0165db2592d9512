"""Features and text of data sets."""
