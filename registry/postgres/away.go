package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// rest is how long a database that could not be reached is not tried again, and how long other callers wait at most for a trial. It is shorter than the time
// between two polls, so that a poll that failed does not cost the next one too.
const rest = 200 * time.Millisecond

// breaker remembers that the database could not be reached, and finds out when it can be again. Meanwhile, other callers do not wait for a database that does
// not answer.
type breaker struct {
	heard atomic.Int64 // when a server last sent something, in Unix nanoseconds

	mu     sync.Mutex
	away   error         // why it can't be reached; nil if it can
	until  time.Time     // no trial before this time
	trial  chan struct{} // closed when the trial in progress has ended; nil for none
	trials sync.WaitGroup
	closed bool
}

// fail notes that the database could not be reached, and when to try again.
func (b *breaker) fail(err error, again time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away, b.until = err, time.Now().Add(again)
}

// enter returns nil if the database can be reached, as far as is known. If it could not be, it has try find out, and waits for that for a short while.
func (b *breaker) enter(ctx context.Context, try func() error) error {
	var enough <-chan time.Time
	for {
		trial, err := b.look(try)
		if trial == nil {
			return err
		}
		if enough == nil {
			enough = time.After(rest)
		}
		select {
		case <-trial:
		case <-enough:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look returns why the database can't be reached, and the trial to wait for, if there is one.
func (b *breaker) look(try func() error) (trial <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away == nil {
		return nil, nil
	}
	err = fmt.Errorf("%w: %w", registry.ErrUnavailable, b.away)
	if b.closed || b.trial == nil && time.Now().Before(b.until) {
		return nil, err
	}
	if b.trial == nil {
		ended := make(chan struct{})
		b.trial = ended
		b.trials.Go(func() {
			failed := try()
			b.mu.Lock()
			defer b.mu.Unlock()
			b.away, b.until, b.trial = failed, time.Now().Add(rest), nil
			close(ended)
		})
	}
	return b.trial, err
}

// close waits for the trial in progress.
func (b *breaker) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.trials.Wait()
}

// tryServer checks that the database accepts a connection. If so, it drops the older ones of the pool: they may lead to a machine that is gone.
func (s *Store) tryServer() error {
	limited, cancel := context.WithTimeout(s.ctx, s.connecting()+patience)
	defer cancel()
	conn, err := pgx.ConnectConfig(limited, s.session)
	if said, ok := errors.AsType[*pgconn.PgError](err); ok && said.Code == tooManyConnections { // it can be reached over the existing ones
		return nil
	}
	if err != nil {
		return err
	}
	closeConn(limited, conn)
	s.pool.Reset()
	return nil
}

// tooManyConnections is the code with which a server refuses another connection.
const tooManyConnections = "53300"

// connecting is how long it may take to find the server that accepts writes, among those of the DSN.
func (s *Store) connecting() time.Duration {
	return time.Duration(1+len(s.session.Fallbacks)) * s.session.ConnectTimeout
}

// listened notes when something arrives over a connection.
type listened struct {
	net.Conn

	heard *atomic.Int64
}

// Read implements net.Conn.
func (l *listened) Read(into []byte) (int, error) {
	n, err := l.Conn.Read(into)
	if n > 0 {
		l.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// limited returns a context for statements, which ends after most. It fails at once while the database is known to be away.
func (s *Store) limited(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc, error) {
	if err := s.reachable(ctx); err != nil {
		return nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, most)
	return limited, cancel, nil
}

func (s *Store) reachable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return s.away.enter(ctx, s.tryServer)
}

// reading returns a context for reading what may be much. It ends when nothing has arrived for as long as patience. The reader calls more with each row.
func (s *Store) reading(ctx context.Context) (reading context.Context, more func(), cancel context.CancelFunc, err error) {
	if err := s.reachable(ctx); err != nil {
		return nil, nil, nil, err
	}
	inner, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(patience, func() { end(context.DeadlineExceeded) })
	return watched{inner}, func() { timer.Reset(patience) }, func() {
		timer.Stop()
		end(nil)
	}, nil
}

// watched is a context that may end because of silence, which counts as an exceeded deadline.
type watched struct{ context.Context }

// Err implements context.Context.
func (w watched) Err() error {
	err := w.Context.Err()
	if err != nil && errors.Is(context.Cause(w.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// callerError returns an error of the database in the form for callers: the end of their own context, ErrUnavailable, or what the database said.
func (s *Store) callerError(ctx context.Context, doing string, err error) error {
	switch said, ok := errors.AsType[*pgconn.PgError](err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	case errors.Is(err, registry.ErrUnavailable):
		return fmt.Errorf("%s: %w", doing, err)
	case ok && !isConnecting(err):
		if isTransient(said.Code) {
			return fmt.Errorf("%s: %w: %w", doing, registry.ErrUnavailable, err)
		}
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch {
	case !s.isCrowded(err):
		s.away.fail(err, rest)
	case time.Since(time.Unix(0, s.away.heard.Load())) > patience: // those that use the connections hear nothing either
		s.away.fail(err, 0)
	}
	return fmt.Errorf("%s: %w: %w", doing, registry.ErrUnavailable, err)
}

// uncertainError is callerError for a statement that was sent and writes by itself: if its answer is lost, it may have been executed.
func (s *Store) uncertainError(ctx context.Context, doing string, err error) error {
	told := s.callerError(ctx, doing, err)
	_, answered := errors.AsType[*pgconn.PgError](err)
	if answered || !errors.Is(told, registry.ErrUnavailable) {
		return told
	}
	return fmt.Errorf("%s: %w: %w", doing, registry.ErrInDoubt, err)
}

// isCrowded reports whether a statement only waited for a connection while others used all of them.
func (s *Store) isCrowded(err error) bool {
	if !errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || isConnecting(err) { // a statement that was sent reports its timeout differently
		return false
	}
	stat := s.pool.Stat()
	return stat.AcquiredConns() >= stat.MaxConns()
}

// openError returns why a database can't be opened: ErrUnavailable for what may pass by itself. What must be mended is returned as it is: a wrong password,
// a missing database, a certificate that is not trusted, tables of a newer version.
func openError(err error) error {
	said, ok := errors.AsType[*pgconn.PgError](err)
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, broken := errors.AsType[net.Error](err)
	switch {
	case ok && !isTransient(said.Code), distrusted:
		return err
	case ok, broken, isConnecting(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
	}
	return err
}

func isConnecting(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}

// isTransient reports whether the code of a server error says nothing about the statement: the server starts, stops, lacks room or connections, or is a
// standby, or others were in the way.
func isTransient(code string) bool {
	switch code {
	case "25006", "25P03", "40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03", "57P05":
		return true
	}
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "53")
}
