package clickhouse

import (
	"context"
	"errors"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// server describes a ClickHouse server.
type server struct {
	version  string
	settings map[string]bool // the settings that it knows
	readonly string          // the user's value of that setting
}

var (
	errNoAnswer   = errors.New("no answer in time")
	errHostSilent = &Error{Kind: Unavailable, Message: unavailable, cause: errNoAnswer}
)

// server queries a host once for the settings that it knows. Concurrent callers share one query. It returns an error if the
// server is too old.
func (c *Client) server(ctx context.Context, h *host) (*server, error) {
	if known := h.known.Load(); known != nil {
		return known, nil
	}
	answer := h.asked.DoChan("", func() (any, error) {
		ctx, cancel := c.shortContext(c.open)
		defer cancel()
		return c.askServer(ctx, h)
	})
	select {
	case a := <-answer:
		if a.Err != nil {
			return nil, &unsentError{a.Err}
		}
		known, _ := a.Val.(*server)
		return known, nil
	case <-ctx.Done():
		return nil, &unsentError{c.failure(ctx, askingServer, context.Cause(ctx))}
	}
}

// shortContext returns a context for a short internal query, which may take as long as a dial in total.
func (c *Client) shortContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.patience, errHostSilent)
}

const askingServer = "reading ClickHouse's settings"

func (c *Client) askServer(ctx context.Context, h *host) (*server, error) {
	s := &server{settings: map[string]bool{}}
	err := h.control.with(ctx, func(ctx context.Context, conn driver.Conn) error {
		return readStrings(ctx, conn, "SELECT name, value, version() FROM system.settings", func(name, value, version string) {
			s.settings[name] = true
			s.version = version
			if name == "readonly" {
				s.readonly = value
			}
		})
	})
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return nil, c.ownFailure(ctx, askingServer, err)
	}
	c.answered(h)
	h.known.Store(s)
	return s, nil
}

// ServerVersion returns the version of the server that answered last; empty when none has answered yet.
func (c *Client) ServerVersion() string {
	for _, h := range c.order(false) {
		if s := h.known.Load(); s != nil {
			return s.version
		}
	}
	return ""
}
