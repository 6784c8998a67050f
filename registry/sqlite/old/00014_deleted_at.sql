-- When a dashboard or a tile was deleted; NULL for one that is not. Those that are deleted already count from now on.
ALTER TABLE dashboards ADD COLUMN deleted_at INTEGER;
UPDATE dashboards SET deleted_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 WHERE deleted = 1;
ALTER TABLE dashboard_tiles ADD COLUMN deleted_at INTEGER;
UPDATE dashboard_tiles SET deleted_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 WHERE deleted = 1;

-- users is the greatest number of a user whose key was removed.
ALTER TABLE registry ADD COLUMN users INTEGER NOT NULL DEFAULT 0;
