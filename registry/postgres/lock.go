package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// locks are the locks of a store: advisory locks of one session, which the server frees when the session ends. The holder of a lock can't notice that the
// session is lost, so each lock has a number that grows with each holder: what it protects is kept only while the number is the same. The database may have been
// set back, and not know of later holders. So the first use of a lock in a session counts as that of another holder, and so does one that finds another number.
type locks struct {
	store *Store

	waiting sync.Mutex // guards turns
	turns   map[string]chan struct{}

	mu     sync.Mutex       // held while the session is used
	conn   *pgx.Conn        // nil before the first lock
	used   map[string]int64 // the numbers of the locks that this session has had
	closed bool

	holding sync.Mutex // guards these; never held while waiting for the server
	held    map[string]int64
	doubted map[string]bool // the names under which a statement may still keep something: see Keep
}

// A lock that another node has is tried again after lockRetry, and then after twice as long each time, up to lockRetryMost.
const (
	lockRetry     = 10 * time.Millisecond
	lockRetryMost = 250 * time.Millisecond
)

// Lock implements registry.Store.
func (s *Store) Lock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	turn := s.locks.turn(name)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return false, nil, fmt.Errorf("%s: %w", taking(name), context.Cause(ctx))
	}
	for wait := lockRetry; ; wait = min(2*wait, lockRetryMost) {
		if others, release, err = s.inTurn(ctx, turn, name, holder); release != nil {
			return others, release, nil
		}
		if err == nil {
			if err = pause.For(ctx, wait); err == nil {
				continue
			}
		}
		<-turn
		return false, nil, s.callerError(ctx, taking(name), err)
	}
}

// TryLock implements registry.Store.
func (s *Store) TryLock(ctx context.Context, name, holder string) (others bool, release func(), err error) {
	turn := s.locks.turn(name)
	select {
	case turn <- struct{}{}:
	default:
		return false, nil, fmt.Errorf("%s: %w", taking(name), registry.ErrHeld)
	}
	if others, release, err = s.inTurn(ctx, turn, name, holder); release != nil {
		return others, release, nil
	}
	<-turn
	if err == nil {
		return false, nil, fmt.Errorf("%s: %w", taking(name), registry.ErrHeld)
	}
	return false, nil, s.callerError(ctx, taking(name), err)
}

// taking says in errors what was to be done.
func taking(name string) string { return "taking the lock " + name }

// inTurn takes a lock if it is free, for a caller whose turn it is. Otherwise release is nil, and the turn remains the caller's.
func (s *Store) inTurn(ctx context.Context, turn <-chan struct{}, name, holder string) (others bool, release func(), err error) {
	session, others, err := s.locks.try(ctx, name, holder)
	if session == nil {
		return false, nil, explainFull(err)
	}
	return others, func() {
		s.locks.release(name, session)
		<-turn
	}, nil
}

// turn returns the channel by which the goroutines of this process take turns.
func (l *locks) turn(name string) chan struct{} {
	l.waiting.Lock()
	defer l.waiting.Unlock()
	turn := l.turns[name]
	if turn == nil {
		turn = make(chan struct{}, 1)
		l.turns[name] = turn
	}
	return turn
}

// try takes a lock if it is free, and returns the session that has it. It does not stop using the session if the caller goes away meanwhile: to break off would
// lose all locks.
func (l *locks) try(ctx context.Context, name, holder string) (session *pgx.Conn, others bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.store.reachable(ctx); err != nil {
		return nil, false, err
	}
	ctx, outer := context.WithoutCancel(ctx), ctx
	var got bool
	ask := func() error {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return l.conn.QueryRow(limited, `SELECT pg_try_advisory_lock($1)`, lockNumber(l.store.schema, name)).Scan(&got)
	}
	used, err := l.connect(ctx)
	if err == nil {
		err = ask()
	}
	if err != nil && used && l.conn.IsClosed() { // the session ended since it was last used; another one begins without its locks
		if err = l.reconnect(ctx); err == nil {
			err = ask()
		}
	}
	if err != nil || !got {
		return nil, false, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if outer.Err() != nil {
		l.unlock(limited, name)
		return nil, false, context.Cause(outer)
	}
	last := l.used[name]
	if l.isDoubted(name) {
		last = 0
	}
	turn, others, err := l.note(limited, name, holder, last)
	if err != nil {
		l.unlock(limited, name)
		return nil, false, err
	}
	l.used[name] = turn
	l.hold(name, turn)
	return l.conn, others, nil
}

// explainFull says what to do about an error if it is that the server has no room for more locks.
func explainFull(err error) error {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok && said.Code == "53200" {
		return fmt.Errorf("%w: if it has no room for more locks, raise PostgreSQL's max_locks_per_transaction, as docs/nodes.md says", err)
	}
	return err
}

// hold notes that this store has a lock.
func (l *locks) hold(name string, turn int64) {
	l.holding.Lock()
	defer l.holding.Unlock()
	l.held[name] = turn
	delete(l.doubted, name)
}

// doubt notes that a statement may still keep something under a name, although nobody waits for it any more. The next holder of the lock changes its number, so
// that the statement does nothing or is waited for.
func (l *locks) doubt(name string) {
	l.holding.Lock()
	defer l.holding.Unlock()
	l.doubted[name] = true
}

func (l *locks) isDoubted(name string) bool {
	l.holding.Lock()
	defer l.holding.Unlock()
	return l.doubted[name]
}

// turnOf returns the number of a lock if this store has it.
func (l *locks) turnOf(name string) (turn int64, held bool) {
	l.holding.Lock()
	defer l.holding.Unlock()
	turn, held = l.held[name]
	return turn, held
}

// drop notes that this store no longer has a lock.
func (l *locks) drop(name string) {
	l.holding.Lock()
	defer l.holding.Unlock()
	delete(l.held, name)
}

// connect makes sure that there is a session. It reports whether there was one already.
func (l *locks) connect(ctx context.Context) (used bool, err error) {
	if l.closed {
		return false, registry.ErrClosed
	}
	if l.conn != nil && !l.conn.IsClosed() {
		return true, nil
	}
	return false, l.reconnect(ctx)
}

// reconnect opens a new session. Each server of the DSN has as long to answer as the DSN allows.
func (l *locks) reconnect(ctx context.Context) (err error) {
	limited, cancel := context.WithTimeout(ctx, l.store.connecting()+patience)
	defer cancel()
	if l.conn != nil {
		closeConn(limited, l.conn) // it is of no use any more
	}
	clear(l.used)
	l.conn, err = pgx.ConnectConfig(limited, l.store.session)
	return err
}

// note records who has a lock now; last is its number when this session last had it, 0 for never. It writes nothing if nobody else has had it since. Numbers are
// not below the time in microseconds, so that none comes again where the database was set back.
func (l *locks) note(ctx context.Context, name, holder string, last int64) (turn int64, others bool, err error) {
	if last != 0 { // an INSERT that changes nothing is still a transaction that locks the row
		var same bool
		err = l.conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM analytics_locks WHERE name = $1 AND holder = $2 AND turn = $3)`, name, holder, last).Scan(&same)
		if err != nil || same {
			return last, false, err
		}
	}
	err = l.conn.QueryRow(ctx, `INSERT INTO analytics_locks AS known (name, holder, turn) VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, turn = greatest(known.turn + 1, excluded.turn) RETURNING turn`, name, holder).Scan(&turn)
	return turn, true, err
}

// release frees a lock that a session has. If the session was lost, the server has freed it.
func (l *locks) release(name string, session *pgx.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(name)
	if session != l.conn || session.IsClosed() {
		return
	}
	limited, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.unlock(limited, name)
}

// unlock frees a lock of the session; a session that can't do that is closed.
func (l *locks) unlock(ctx context.Context, name string) {
	if _, err := l.conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, lockNumber(l.store.schema, name)); err != nil {
		_ = l.conn.Close(ctx) // the server frees all locks
	}
}

func (l *locks) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		limited, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = l.conn.Close(limited) // the server frees all locks
	}
}

// errLockLost says that another node has got the lock in the meantime.
var errLockLost = errors.New("the connection that had its lock was lost, and another node has it now")

// Interface guard.
var _ registry.LockChecker = (*Store)(nil)

// CheckLocks implements registry.LockChecker. A lost lock that nobody has taken since counts as held: whoever takes it later changes its number first.
func (s *Store) CheckLocks(ctx context.Context, names []string) error {
	const doing = "checking locks"
	turns := make([]int64, len(names))
	for i, name := range names {
		turns[i], _ = s.locks.turnOf(name) // 0, which no lock has, if it was lost
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return s.callerError(ctx, doing, err)
	}
	defer conn.Release()
	limited, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	var held int
	err = conn.QueryRow(limited, `SELECT count(*) FROM analytics_locks JOIN unnest($1::text[], $2::bigint[]) AS mine (name, turn) USING (name, turn)`,
		names, turns).Scan(&held)
	if err == nil && held < len(names) {
		return fmt.Errorf("%s: %w: %w", doing, registry.ErrUnavailable, errLockLost)
	}
	return s.callerError(ctx, doing, err)
}

// Keep implements registry.Store. What a lock of this name protects is kept only if nobody else has got the lock in the meantime.
func (s *Store) Keep(ctx context.Context, name string, data []byte) error {
	doing := "keeping " + name
	conn, err := s.acquire(ctx)
	if err != nil {
		return s.callerError(ctx, doing, err)
	}
	defer conn.Release()
	limited, cancel := context.WithTimeout(ctx, patienceFor(len(data)))
	defer cancel()
	turn, held := s.locks.turnOf(name)
	// Until the statement ends, nobody else gets the lock. If another node is about to get it, the statement waits, and sees that.
	const mine, fence = `WITH mine AS MATERIALIZED (SELECT 1 FROM analytics_locks WHERE name = $1 AND turn = $3 FOR SHARE)`, `(NOT $2::boolean OR EXISTS (SELECT 1 FROM mine))`
	query, args := mine+` INSERT INTO analytics_kept (name, data) SELECT $1, $4::bytea WHERE `+fence+` ON CONFLICT (name) DO UPDATE SET data = excluded.data RETURNING true`,
		[]any{name, held, turn, data}
	if len(data) == 0 {
		query, args = mine+`, gone AS (DELETE FROM analytics_kept WHERE name = $1 AND `+fence+`) SELECT true WHERE `+fence, args[:3]
	}
	var done bool
	err = conn.QueryRow(limited, query, args...).Scan(&done)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w: %w", doing, registry.ErrUnavailable, errLockLost)
	}
	if err != nil && held {
		s.locks.doubt(name)
	}
	return s.uncertainError(ctx, doing, err)
}

// small is the most bytes of kept data that get no more time than a small statement.
const small = 1 << 20

func patienceFor(size int) time.Duration {
	if size > small {
		return longPatience
	}
	return patience
}

// acquire returns a connection, which the caller releases.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	limited, cancel, err := s.limited(ctx, patience)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return s.pool.Acquire(limited)
}

// Kept implements registry.Store.
func (s *Store) Kept(ctx context.Context, name string) (data []byte, err error) {
	doing := "reading what is kept as " + name
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, s.callerError(ctx, doing, err)
	}
	defer conn.Release()
	for _, most := range []int{small, math.MaxInt32} { // the size is not known before
		var size int
		if data, size, err = kept(ctx, conn, name, most); err != nil {
			return nil, s.callerError(ctx, doing, err)
		}
		if size <= most {
			break
		}
	}
	return data, nil
}

// kept returns the data kept under a name, and its size. Data of more than most bytes is left out.
func kept(ctx context.Context, conn *pgxpool.Conn, name string, most int) (data []byte, size int, err error) {
	limited, cancel := context.WithTimeout(ctx, patienceFor(most))
	defer cancel()
	err = conn.QueryRow(limited, `SELECT octet_length(data), CASE WHEN octet_length(data) <= $2 THEN data END FROM analytics_kept WHERE name = $1`, name, most).Scan(&size, &data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, nil
	}
	return data, size, err
}
