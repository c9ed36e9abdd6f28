"""The staff's site and the kinds of page it is built from; each app registers its own pages."""
