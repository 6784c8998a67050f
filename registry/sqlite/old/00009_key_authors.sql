-- created_by is the id of the personal key that made this one over the API; NULL when an operator did.
ALTER TABLE keys ADD COLUMN created_by TEXT;
