package clickhouse

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
)

// contact is whether ClickHouse answers, as the last question showed. It is logged when that changes, and not with every query.
type contact struct {
	hosts    []string
	user     string
	password string
	database string
	http     bool
	tls      bool
	dial     dialFunc

	up      atomic.Bool // so that queries which go well take no lock
	mu      sync.Mutex
	outage  *outage              // nil while it answers, and before anything was asked
	told    bool                 // the outage is in the log
	noticed map[string]time.Time // when each advice was last logged: reasons may quote what the server says
}

// outage is why ClickHouse cannot be asked, and what an operator can do. Neither holds a secret.
type outage struct{ reason, advice string }

// repeatAfter is how long an outage for the same reason is not logged again: a connection may come and go.
const repeatAfter = time.Minute

func (k *contact) init(options *driver.Options) {
	k.hosts, k.user, k.password, k.database = options.Addr, options.Auth.Username, options.Auth.Password, options.Auth.Database
	k.http, k.tls = options.Protocol == driver.HTTP, options.TLS != nil
	k.dial = dialer(options.DialContext, nil)
	k.noticed = map[string]time.Time{}
}

// Reachable reports whether ClickHouse answered when it was last asked. While it did not, the reason says why, in words for the
// operator; it is empty before anything was asked.
func (c *Client) Reachable() (ok bool, reason string) {
	k := &c.contact
	if k.up.Load() {
		return true, ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.outage == nil {
		return false, ""
	}
	return false, k.outage.reason
}

// answered notes that ClickHouse answered.
func (c *Client) answered() {
	k := &c.contact
	if k.up.Load() {
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

// noteFailure notes that ClickHouse could not be asked; other errors are none of its concern.
func (c *Client) noteFailure(err *Error) {
	if err.Kind != Unavailable || c.open.Err() != nil {
		return
	}
	k := &c.contact
	now := k.explain(err)
	if now == silence {
		now = k.explainSilence()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	same := k.outage != nil && k.outage.advice == now.advice
	k.outage = &now
	k.up.Store(false)
	if same || c.config.Embedded || time.Since(k.noticed[now.advice]) < repeatAfter {
		return
	}
	k.noticed[now.advice] = time.Now()
	k.told = true
	c.logger.Warn("ClickHouse cannot be used; queries get stale answers or 503 until it can",
		zap.Strings("hosts", k.hosts), zap.String("reason", now.reason), zap.String("what_to_do", now.advice))
}

// clean takes the password out of a text, and bounds it.
func (k *contact) clean(text string) string {
	if k.password != "" {
		text = strings.ReplaceAll(text, k.password, "***")
	}
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// Clean takes the password of the DSN out of a text for the log, and bounds its length.
func (c *Client) Clean(text string) string { return c.contact.clean(text) }
