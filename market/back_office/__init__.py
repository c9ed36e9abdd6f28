"""The staff's view of the market that is no list of rows."""
