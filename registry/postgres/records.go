package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// remembered is for how many revisions removed records are remembered.
const remembered = 10_000

// recent is how many of the latest writes are listed, by the random numbers that they have drawn.
const recent = 128

// Revision returns the number of the last write that put a record, and its mark.
func (s *Store) Revision(ctx context.Context) (revision uint64, mark int64, err error) {
	const doing = "reading the revision"
	limited, cancel, err := s.limited(ctx, patience)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	var found int64
	const query = `SELECT revision, coalesce((SELECT mark FROM analytics_marks AS m WHERE m.revision = r.revision), 0) FROM analytics_registry AS r`
	if err := s.pool.QueryRow(limited, query).Scan(&found, &mark); err != nil {
		return 0, 0, s.callerError(ctx, doing, err)
	}
	return unsigned(found), mark, nil
}

// repeatableRead makes all statements of a transaction see the same state.
var repeatableRead = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// Load returns the records that were put after a revision.
func (s *Store) Load(ctx context.Context, since uint64) (*registry.Changes, error) {
	const doing = "reading records"
	limited, more, cancel, err := s.reading(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	var changes *registry.Changes
	err = pgx.BeginTxFunc(limited, s.pool, repeatableRead, func(tx pgx.Tx) error {
		var revision, forgotten, mark, sinceMark int64
		const state = `SELECT revision, forgotten, coalesce((SELECT mark FROM analytics_marks AS m WHERE m.revision = r.revision), 0),
			coalesce((SELECT mark FROM analytics_marks WHERE revision = $1), 0) FROM analytics_registry AS r`
		if err := tx.QueryRow(limited, state, int64(since)).Scan(&revision, &forgotten, &mark, &sinceMark); err != nil { //nolint:gosec // it comes from a bigint
			return err
		}
		changes = &registry.Changes{
			Revision: unsigned(revision), Whole: since == 0 || since > unsigned(revision) || since < unsigned(forgotten),
			Mark: mark, SinceMark: sinceMark,
		}
		query, args := `SELECT project, kind, id, revision, data FROM analytics_records WHERE revision > $1`, []any{int64(since)} //nolint:gosec // it comes from a bigint
		if changes.Whole {
			query, args = `SELECT project, kind, id, revision, data FROM analytics_records WHERE data IS NOT NULL`, nil
		}
		rows, err := tx.Query(limited, query, args...)
		if err != nil {
			return err
		}
		changes.Records, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (registry.Record, error) {
			more()
			return readRecord(row)
		})
		return err
	})
	if err != nil {
		return nil, s.callerError(ctx, doing, err)
	}
	return changes, nil
}

func readRecord(row pgx.CollectableRow) (rec registry.Record, err error) {
	var revision int64
	var data *string
	err = row.Scan(&rec.Project, (*string)(&rec.Kind), &rec.ID, &revision, &data)
	rec.Revision, rec.Data = unsigned(revision), bytesOf(data)
	return rec, err
}

// Write does all of w in one transaction, alone among the writers of all nodes.
func (s *Store) Write(ctx context.Context, w *registry.Write) (revision uint64, err error) {
	const doing = "writing to the registry"
	limited, cancel, err := s.limited(ctx, patience)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	tx, err := s.pool.BeginTx(limited, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return 0, s.callerError(ctx, doing, err)
	}
	defer rollBack(ctx, tx)
	p := newPlan(s, w)
	if err := tx.SendBatch(limited, &p.batch).Close(); err != nil || p.failed != nil {
		if p.failed != nil {
			return 0, p.failed
		}
		return 0, s.callerError(ctx, doing, err)
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	if len(w.Put) > 0 {
		w.Mark = p.drawn
	}
	return unsigned(p.revision), s.commit(ctx, doing, tx, p)
}

// rollBack undoes a transaction, whether or not its caller still waits. After a commit it does nothing.
func rollBack(ctx context.Context, tx pgx.Tx) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = tx.Rollback(limited) // the server does it when the connection ends
}

// commit ends a write, whether or not its caller still waits. If the answer is lost, it finds out whether the write was done. The number of the transaction
// would not tell: after a crash of the server, another one may have it.
func (s *Store) commit(ctx context.Context, doing string, tx pgx.Tx, p *plan) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	lost := tx.Commit(limited)
	switch {
	case lost == nil:
		return nil
	case errors.Is(lost, pgx.ErrTxCommitRollback):
		return fmt.Errorf("%s: %w: %w", doing, registry.ErrUnavailable, lost)
	}
	asking, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	for {
		var done bool
		var writes int64
		// The lock of the row waits for the write, if it is still in progress.
		err := s.pool.QueryRow(asking, `SELECT $1 = ANY(recent), writes FROM analytics_registry FOR SHARE`, p.drawn).Scan(&done, &writes)
		switch {
		case err == nil && done:
			return nil
		case err == nil && writes < p.number+recent:
			return fmt.Errorf("%s: %w: %w", doing, registry.ErrUnavailable, lost)
		case err == nil: // too many others came later for it to be listed
			return fmt.Errorf("%s: %w: %w", doing, registry.ErrInDoubt, lost)
		}
		select {
		case <-asking.Done():
			return fmt.Errorf("%s: %w: %w", doing, registry.ErrInDoubt, lost)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// plan is a write as statements that are sent together.
type plan struct {
	batch    pgx.Batch
	revision int64 // 0 if no record is put
	number   int64 // of the write, among all writes
	drawn    int64 // at random, to find the write by; the mark of its revision
	failed   error // why the write is refused, other than by an error of the database
}

// The statements of a write. The first ones wait for other writers.
const (
	beginWrite = `UPDATE analytics_registry SET revision = revision + $1::bigint, writes = writes + 1,
		recent = (recent || $2::bigint)[greatest(1, cardinality(recent) + 2 - $3::integer):] RETURNING revision * $1::bigint, version, writes`
	notifyOthers = `SELECT pg_notify($1, $2)`
	// addMark removes old marks: a process that has read only up to one of these reads all records again.
	addMark = `WITH old AS (DELETE FROM analytics_marks WHERE revision <= (SELECT revision FROM analytics_registry) - $2)
		INSERT INTO analytics_marks (revision, mark) SELECT revision, $1 FROM analytics_registry ON CONFLICT (revision) DO UPDATE SET mark = excluded.mark`
	otherMark = `SELECT NOT EXISTS (SELECT 1 FROM analytics_marks WHERE revision = $1 AND mark = $2)`

	putRecords = `INSERT INTO analytics_records (project, kind, id, revision, data)
		SELECT put.project, put.kind, put.id, analytics_registry.revision, put.data
		FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) AS put (project, kind, id, data), analytics_registry
		ON CONFLICT (project, kind, id) DO UPDATE SET revision = excluded.revision, data = excluded.data`
	freeKeys = `DELETE FROM analytics_unique_keys AS known USING unnest($1::bigint[], $2::text[], $3::text[]) AS put (project, kind, id)
		WHERE known.project = put.project AND known.kind = put.kind AND known.id = put.id`
	takeKeys = `INSERT INTO analytics_unique_keys (kind, key, project, id)
		SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) ON CONFLICT DO NOTHING RETURNING kind, key`

	forgetRemoved = `DELETE FROM analytics_records WHERE data IS NULL AND revision <= (SELECT revision FROM analytics_registry) - $1`
	noteForgotten = `UPDATE analytics_registry SET forgotten = greatest(forgotten, revision - $1)`

	appendEntries = `INSERT INTO analytics_entries AS known (project, log, id, item, by, at, data)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])
		ON CONFLICT (project, log, id) DO UPDATE SET item = excluded.item, by = excluded.by, at = excluded.at, data = excluded.data WHERE known.at <= excluded.at`
	forgetEntries = `DELETE FROM analytics_entries WHERE project = $1 AND log = $2 AND CASE WHEN $3::text <> '' THEN item = $3 ELSE by = $4 END`
	// cutLog deletes the latest entry beyond the limits, and all before it. It finds that entry once: a server that does not know yet how many entries there are
	// would make a list of ids anew for each entry.
	cutLog = `DELETE FROM analytics_entries WHERE project = $1 AND log = $2
		AND EXISTS (SELECT 1 FROM analytics_logs WHERE project = $1 AND log = $2 AND (entries > $3::bigint OR bytes > $4::bigint))
		AND (at, id) <= (
			SELECT at, id FROM (
				SELECT at, id, row_number() OVER latest AS place, sum(coalesce(octet_length(data), 0)) OVER latest AS taken
				FROM analytics_entries WHERE project = $1 AND log = $2 WINDOW latest AS (ORDER BY at DESC, id DESC)
			) AS ranked WHERE place > $3::bigint * 9 / 10 OR taken > $4::bigint * 9 / 10 ORDER BY at DESC, id DESC LIMIT 1)`
)

// newMark draws a random number that is not 0, so that no other write has it.
func newMark() int64 { return 1 + rand.Int64N(math.MaxInt64) } //nolint:gosec // not a secret

// newPlan returns the statements of a write. All are executed, whatever came of those before: a caller that finds failed set undoes them.
func newPlan(s *Store, w *registry.Write) *plan {
	p := &plan{drawn: newMark()}
	p.batch.Queue(beginWrite, min(1, len(w.Put)), p.drawn, recent).QueryRow(func(row pgx.Row) error {
		var found int
		if err := row.Scan(&p.revision, &found, &p.number); err != nil {
			return err
		}
		if found > version {
			p.fail(newerError(found))
		}
		return nil
	})
	marks := make(map[[2]int64]bool)
	for _, e := range w.Expect {
		p.expect(e)
		if mark := [2]int64{int64(e.Revision), e.Mark}; e.Mark != 0 && !marks[mark] { //nolint:gosec // as in Load
			marks[mark] = true
			p.refuse(otherMark, mark[0], mark[1])
		}
	}
	if len(w.Put) > 0 {
		p.batch.Queue(addMark, p.drawn, remembered)
		p.put(w.Put)
		p.batch.Queue(notifyOthers, s.channel(), s.id)
	}
	p.log(w)
	return p
}

// fail notes the first reason to refuse a write.
func (p *plan) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

func (p *plan) expect(e registry.Expectation) {
	query, args := `SELECT (SELECT forgotten FROM analytics_registry) > $2 OR EXISTS (SELECT 1 FROM analytics_records WHERE project = $1 AND revision > $2`, []any{e.Project, int64(e.Revision)} //nolint:gosec // as in Load
	if e.Kind != "" {
		query, args = query+` AND kind = $3`, append(args, string(e.Kind))
		if e.One {
			query, args = query+` AND id = $4`, append(args, e.ID)
		}
	}
	p.refuse(query+`)`, args...)
}

// refuse refuses the write as stale if a query returns true.
func (p *plan) refuse(query string, args ...any) {
	p.batch.Queue(query, args...).QueryRow(func(row pgx.Row) error {
		var stale bool
		if err := row.Scan(&stale); err != nil {
			return err
		}
		if stale {
			p.fail(registry.ErrStale)
		}
		return nil
	})
}

// uniqueKey is a key that no two records of a kind may share.
type uniqueKey struct{ kind, key string }

func (p *plan) put(records []registry.Record) {
	var c columns
	var keys []uniqueKey
	var kinds, texts, ids []string
	var projects []int64
	removes := false
	for i := range records {
		rec := &records[i]
		c.add(rec)
		if rec.Data == nil {
			removes = true
			continue
		}
		for _, key := range rec.Unique {
			keys = append(keys, uniqueKey{string(rec.Kind), key})
			kinds, texts, projects, ids = append(kinds, string(rec.Kind)), append(texts, key), append(projects, rec.Project), append(ids, rec.ID)
		}
	}
	p.batch.Queue(putRecords, c.projects, c.kinds, c.ids, c.data)
	p.batch.Queue(freeKeys, c.projects, c.kinds, c.ids)
	if len(keys) > 0 {
		p.batch.Queue(takeKeys, kinds, texts, projects, ids).Query(func(rows pgx.Rows) error {
			taken, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k uniqueKey, err error) {
				err = row.Scan(&k.kind, &k.key)
				return k, err
			})
			if err != nil {
				return err
			}
			p.missing(keys, taken)
			return nil
		})
	}
	if removes {
		p.batch.Queue(forgetRemoved, remembered)
		p.batch.Queue(noteForgotten, remembered)
	}
}

// missing refuses the write if a wanted key is not among those that were taken.
func (p *plan) missing(wanted, taken []uniqueKey) {
	got := make(map[uniqueKey]bool, len(taken))
	for _, key := range taken {
		got[key] = true
	}
	for _, key := range wanted {
		if !got[key] {
			p.fail(&registry.ConflictError{Kind: registry.Kind(key.kind), Key: key.key})
			return
		}
		delete(got, key) // another record of the write can't have it too
	}
}

// columns holds records in the form of a statement's parameters.
type columns struct {
	projects   []int64
	kinds, ids []string
	data       []*string
}

func (c *columns) add(rec *registry.Record) {
	c.projects, c.kinds, c.ids, c.data = append(c.projects, rec.Project), append(c.kinds, string(rec.Kind)), append(c.ids, rec.ID), append(c.data, textOf(rec.Data))
}

// log changes logs as w says.
func (p *plan) log(w *registry.Write) {
	if entries := latestOnly(w.Append); len(entries) > 0 {
		p.batch.Queue(appendEntries, entryColumns(entries)...)
	}
	for _, f := range w.Forget {
		p.batch.Queue(forgetEntries, f.Project, f.Log, f.Item, f.By)
	}
	for _, b := range w.Bounds {
		p.batch.Queue(cutLog, b.Project, b.Log, b.Entries, b.Bytes)
	}
}

// latestOnly leaves out entries that others of the same write replace: a statement can change a row only once.
func latestOnly(entries []registry.Entry) []registry.Entry {
	type name struct {
		project int64
		log, id string
	}
	places := make(map[name]int, len(entries))
	var left []registry.Entry
	for _, e := range entries {
		n := name{e.Project, e.Log, e.ID}
		at, known := places[n]
		switch {
		case !known:
			places[n] = len(left)
			left = append(left, e)
		case !left[at].At.After(e.At):
			left[at] = e
		}
	}
	return left
}

// entryColumns returns entries as the parameters of appendEntries.
func entryColumns(entries []registry.Entry) []any {
	var projects, at []int64
	var logs, ids, items, by []string
	var data []*string
	for i := range entries {
		e := &entries[i]
		projects, at, data = append(projects, e.Project), append(at, e.At.UnixMicro()), append(data, textOf(e.Data))
		logs, ids, items, by = append(logs, e.Log), append(ids, e.ID), append(items, e.Item), append(by, e.By)
	}
	return []any{projects, logs, ids, items, by, at, data}
}

// Entries returns a part of a log, latest first.
func (s *Store) Entries(ctx context.Context, project int64, log string, page registry.EntryPage) (entries []registry.Entry, total int, err error) {
	const doing = "reading a log"
	limited, more, cancel, err := s.reading(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	where, args := ` FROM analytics_entries WHERE project = $1 AND log = $2 AND at >= $3`, []any{project, log, page.Since.UnixMicro()}
	and := func(condition string, arg any) {
		args = append(args, arg)
		where += condition + strconv.Itoa(len(args))
	}
	if page.By != "" {
		and(` AND by = $`, page.By)
	}
	if page.Items != nil {
		and(` AND item = ANY($`, page.Items)
		where += `)`
	}
	batch := new(pgx.Batch)
	part, partArgs := ` ORDER BY at DESC, id DESC`, slices.Clone(args)
	if page.Limit > 0 {
		batch.Queue(`SELECT count(*)`+where, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
		part += fmt.Sprintf(` LIMIT $%d OFFSET $%d`, len(args)+1, len(args)+2)
		partArgs = append(partArgs, page.Limit, page.Offset)
	}
	batch.Queue(`SELECT id, item, by, at, data`+where+part, partArgs...).Query(func(rows pgx.Rows) (err error) {
		entries, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (registry.Entry, error) {
			more()
			e := registry.Entry{Project: project, Log: log}
			var at int64
			var data *string
			err := row.Scan(&e.ID, &e.Item, &e.By, &at, &data)
			e.At, e.Data = time.UnixMicro(at).UTC(), bytesOf(data)
			return e, err
		})
		return err
	})
	err = pgx.BeginTxFunc(limited, s.pool, repeatableRead, func(tx pgx.Tx) error { return tx.SendBatch(limited, batch).Close() })
	if err != nil {
		return nil, 0, s.callerError(ctx, doing, err)
	}
	return entries, max(total, len(entries)), nil
}

// ForgetProject removes the logs of a project, and the names of its removed records. A process that has not read of their removal yet reads all records again.
func (s *Store) ForgetProject(ctx context.Context, project int64) error {
	doing := fmt.Sprintf("forgetting project %d", project)
	limited, cancel, err := s.limited(ctx, longPatience)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	tx, err := s.pool.Begin(limited)
	if err != nil {
		return s.callerError(ctx, doing, err)
	}
	defer rollBack(ctx, tx)
	batch := new(pgx.Batch)
	batch.Queue(`SELECT 1 FROM analytics_registry FOR UPDATE`) // others wait
	for _, statement := range []string{
		`DELETE FROM analytics_entries WHERE project = $1`,
		`DELETE FROM analytics_logs WHERE project = $1`,
		`UPDATE analytics_registry SET forgotten = greatest(forgotten, (SELECT coalesce(max(revision), 0) FROM analytics_records WHERE project = $1 AND data IS NULL))`,
		`DELETE FROM analytics_records WHERE project = $1 AND data IS NULL`,
	} {
		batch.Queue(statement, project)
	}
	if err := tx.SendBatch(limited, batch).Close(); err != nil {
		return s.callerError(ctx, doing, err)
	}
	return s.uncertainError(ctx, doing, tx.Commit(limited))
}

// EraseRemoved makes the server clean up what was removed or overwritten, so that its room in the tables is used again. Its bytes may stay on the disk until
// then, in the write-ahead log of the server until that is recycled, and in backups, which are up to the operator.
func (s *Store) EraseRemoved(ctx context.Context) error {
	const doing = "erasing what was removed from the registry"
	limited, cancel, err := s.limited(ctx, 10*longPatience)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	for _, table := range []string{"records", "unique_keys", "entries", "logs", "kept"} {
		if _, err := s.pool.Exec(limited, `VACUUM analytics_`+table, pgx.QueryExecModeExec); err != nil {
			return s.callerError(ctx, doing, err)
		}
	}
	return nil
}

// textOf returns JSON as it is stored; nil becomes NULL.
func textOf(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

func bytesOf(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

// unsigned converts a revision of the database to a revision of the registry.
func unsigned(revision int64) uint64 {
	if revision < 0 {
		return 0
	}
	return uint64(revision)
}
