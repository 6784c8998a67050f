-- A random number that each write draws which puts records. Who has read up to a revision compares its mark: another one says that the database was set
-- back since, by a failover that lost writes or by a backup that was restored, and that the revisions were counted again.
CREATE TABLE analytics_marks (
    revision bigint PRIMARY KEY,
    mark     bigint NOT NULL
);
