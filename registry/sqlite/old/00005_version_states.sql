-- published_at is when a version last became the current one; NULL is a draft.
ALTER TABLE endpoint_versions ADD COLUMN published_at INTEGER;
UPDATE endpoint_versions SET published_at = created_at;
ALTER TABLE endpoint_versions ADD COLUMN deprecated_at INTEGER;
ALTER TABLE endpoint_versions ADD COLUMN sunset_at INTEGER;
ALTER TABLE endpoint_versions ADD COLUMN optional_breakdowns TEXT CHECK (optional_breakdowns IS NULL OR json_valid(optional_breakdowns));
