package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// rest is how long nobody tries again to reach a database that could not be reached, so that those who wait for each other do not all
// wait for it. It is shorter than the time between two polls, so that a poll that failed does not cost the next one too.
const rest = 200 * time.Millisecond

// breaker remembers that the database could not be reached.
type breaker struct{ last atomic.Pointer[outage] }

type outage struct {
	until time.Time
	err   error
}

// limited returns a context for statements, which ends after most. It is an error at once while the database is known to be away.
func (s *Store) limited(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, context.Cause(ctx)
	}
	if o := s.away.last.Load(); o != nil && time.Now().Before(o.until) {
		return nil, nil, fmt.Errorf("%w: %w", registry.ErrUnavailable, o.err)
	}
	limited, cancel := context.WithTimeout(ctx, most)
	return limited, cancel, nil
}

// told returns an error of the database as callers are to know it: the caller's own end, ErrUnavailable, or what the database said.
func (s *Store) told(ctx context.Context, doing string, err error) error {
	switch said, ok := errors.AsType[*pgconn.PgError](err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	case errors.Is(err, registry.ErrUnavailable):
		return fmt.Errorf("%s: %w", doing, err)
	case ok && !isConnecting(err):
		if isPassing(said.Code) {
			return fmt.Errorf("%s: %w: %w", doing, registry.ErrUnavailable, err)
		}
		return fmt.Errorf("%s: %w", doing, err)
	}
	if !s.isCrowded(err) {
		s.away.last.Store(&outage{time.Now().Add(rest), err})
	}
	return fmt.Errorf("%s: %w: %w", doing, registry.ErrUnavailable, err)
}

// isCrowded reports whether a statement only waited for a connection while others used all of them, which is no outage: a server that says
// nothing is found away by these.
func (s *Store) isCrowded(err error) bool {
	if !errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || isConnecting(err) { // a statement that was sent tells of its timeout otherwise
		return false
	}
	stat := s.pool.Stat()
	return stat.AcquiredConns() >= stat.MaxConns()
}

// opening returns why a database can't be opened: ErrUnavailable for what may pass without anybody's doing. What has to be mended is told as it
// is: a password, a database that is not there, a certificate that is not trusted, tables of a newer version.
func opening(err error) error {
	said, ok := errors.AsType[*pgconn.PgError](err)
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, broken := errors.AsType[net.Error](err)
	switch {
	case ok && !isPassing(said.Code), distrusted:
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

// isPassing reports whether an error of the server, by its code, says nothing of the statement: it starts, stops, lacks room or
// connections, is a standby, or others were in the way.
func isPassing(code string) bool {
	switch code {
	case "25006", "25P03", "40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03", "57P05":
		return true
	}
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "53")
}
