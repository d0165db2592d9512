"""What several modules use and no user calls; the map of ``plrank_fast`` says which of it stands above which."""
