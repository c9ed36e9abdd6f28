"""What only the whole program can say of the back office: sidebar, first page, and the roles of staff."""
