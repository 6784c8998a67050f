-- rate_limit is the queries that runs of an endpoint may cause, such as 60/m; NULL leaves them to the server's default.
ALTER TABLE endpoints ADD COLUMN rate_limit TEXT;
