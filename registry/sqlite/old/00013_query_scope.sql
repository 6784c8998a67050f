-- needs_query_scope is 1 for an insight whose query a key without query:read saved. Those that are there already go on as they were.
ALTER TABLE insights ADD COLUMN needs_query_scope INTEGER NOT NULL DEFAULT 0 CHECK (needs_query_scope IN (0, 1));
