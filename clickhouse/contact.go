package clickhouse

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

// contact tracks whether ClickHouse is reachable, and logs when that changes rather than with every query.
type contact struct {
	hosts    []string
	user     string
	password string
	database string
	http     bool
	tls      bool
	dial     dialFunc

	up      atomic.Bool // so that successful queries take no lock
	mu      sync.Mutex
	outage  *outage              // nil while it answers, and before the first query
	told    bool                 // the outage has been logged
	noticed map[string]time.Time // when each advice was last logged; reasons may vary with the server's text
}

// outage is the reason why ClickHouse cannot be used, and what an operator can do. Neither contains secrets.
type outage struct{ reason, advice string }

// repeatAfter is how long the same advice is not logged again, because connections may come and go.
const repeatAfter = time.Minute

func (k *contact) init(options *driver.Options) {
	k.hosts, k.user, k.password, k.database = options.Addr, options.Auth.Username, options.Auth.Password, options.Auth.Database
	k.http, k.tls = options.Protocol == driver.HTTP, options.TLS != nil
	k.dial = dialer(options.DialContext, nil)
	k.noticed = map[string]time.Time{}
}

// Reachable reports whether ClickHouse answered when it was last contacted; with several hosts, whether one of them did. If not, reason explains why
// to the operator; it is empty before the first contact.
func (c *Client) Reachable() (ok bool, reason string) {
	for _, h := range c.hosts {
		if h.contact.up.Load() {
			return true, ""
		}
		if reason == "" {
			reason = h.contact.reason()
		}
	}
	return false, reason
}

func (k *contact) reason() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.outage == nil {
		return ""
	}
	return k.outage.reason
}

// answered records that a host answered. It ignores a host whose tables differ from those of the others, because it can't be used anyway.
func (c *Client) answered(h *host) {
	k := &h.contact
	if k.up.Load() || h.unfit.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outage = nil
	k.up.Store(true)
	if k.told {
		k.told = false
		c.logger.Info("ClickHouse answers again", zap.Strings("hosts", k.hosts))
	}
}

// noteFailure records that a host could not be used. It ignores errors of kinds other than Unavailable. If there are several hosts, this one is left
// out unless the error is about the query.
func (c *Client) noteFailure(h *host, err *Error) {
	switch {
	case err.Kind != Unavailable || c.open.Err() != nil:
	case len(c.hosts) > 1 && (err.Code == 0 || login[err.Code]):
		c.exclude(h, err)
	default:
		c.logUnusable(h, err)
	}
}

// login has the codes of errors with which a server denies us access.
var login = map[int]bool{unknownDatabase: true, 192: true, 193: true, 194: true, 195: true, 291: true, 516: true, 720: true}

// logUnusable logs why a host cannot be used, and what to do.
func (c *Client) logUnusable(h *host, err *Error) {
	k := &h.contact
	now := k.explain(err)
	if now == silence {
		now = k.explainSilence()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.open.Err() != nil || len(c.hosts) > 1 && err.Code == 0 && !h.out.Load() { // it came back meanwhile
		return
	}
	same := k.outage != nil && k.outage.advice == now.advice
	k.outage = &now
	k.up.Store(false)
	if same || c.config.Embedded || time.Since(k.noticed[now.advice]) < repeatAfter {
		return
	}
	k.noticed[now.advice] = time.Now()
	k.told = true
	text := "ClickHouse cannot be used; until it recovers, queries get stale results or 503"
	if c.otherUsable(h) {
		text = "a host of ClickHouse cannot be used; until it recovers, the others are asked"
	}
	c.logger.Warn(text,
		zap.Strings("hosts", k.hosts), zap.String("reason", now.reason), zap.String("what_to_do", now.advice))
}

// redact removes the password from a text and limits its length.
func (k *contact) redact(text string) string {
	if k.password != "" {
		text = strings.ReplaceAll(text, k.password, "***")
	}
	return shorten.Text(text, 300)
}

// Clean removes the DSN's password from a text for the log and limits its length.
func (c *Client) Clean(text string) string { return c.hosts[0].contact.redact(text) }

// otherUsable reports whether any other host can be used.
func (c *Client) otherUsable(than *host) bool {
	return slices.ContainsFunc(c.hosts, func(h *host) bool { return h != than && !h.out.Load() && !h.unfit.Load() })
}
