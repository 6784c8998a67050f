package execution

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// LimitName names a limit in headers and metrics.
type LimitName string

const (
	LimitEndpoint    LimitName = "endpoint"
	LimitKey         LimitName = "key"
	LimitToken       LimitName = "token"
	LimitConcurrency LimitName = "concurrency"
)

// quota is an allowance that a query counts on.
type quota struct {
	*allowance
	limit     LimitName
	owner     string // the id of the endpoint, key or token it belongs to
	partition string // the name of what the limit applies to, where a caller meets the limit for several things
}

// Quotas are all the allowances that a query counts on, ordered from the one that most callers share to the one that fewest do. Everything that takes
// from several locks them in this order.
type Quotas []quota

// quotas returns what the computation's queries count on: the allowance of its endpoint, whoever sends the runs, that of its key, and the token's own
// share of it.
func (x *Computation) quotas() Quotas {
	qs := make(Quotas, 0, 3)
	if e := x.query.Endpoint; e != nil {
		if r := cmp.Or(e.RateLimit, x.exec.EndpointRate); !r.IsZero() {
			qs = append(qs, quota{x.exec.Limits.OfEndpoint(e.ID, r), LimitEndpoint, e.ID, e.Name})
		}
	}
	return append(qs, x.Caller.quotas(x.exec.Limits)...)
}

// quotas returns what work of any kind for the caller counts on: the allowance of its key, and the token's own share of it.
func (c *Caller) quotas(limits *Limiter) Quotas {
	var qs Quotas
	if c.Key != nil {
		qs = append(qs, quota{limits.OfKey(c.Key.Payer()), LimitKey, c.Key.Payer(), ""})
	}
	if c.Share != nil {
		qs = append(qs, quota{c.Share.allowance, LimitToken, c.Share.id, ""})
	}
	return qs
}

// owns reports whether one of the allowances belongs to owner.
func (qs Quotas) owns(owner string) bool {
	return slices.ContainsFunc(qs, func(q quota) bool { return q.owner == owner })
}

func (qs Quotas) lock() (unlock func()) {
	for _, q := range qs {
		q.mu.Lock()
	}
	return func() {
		for _, q := range qs {
			q.mu.Unlock()
		}
	}
}

// prepare waits until this node knows what it has of the allowances that nodes share.
func (qs Quotas) prepare(ctx context.Context) {
	for _, q := range qs {
		if q.shared != nil {
			q.shared.prepare(ctx)
		}
	}
}

// takeTries is how often a query tries again when others took first what was in hand.
const takeTries = 5

// takeAhead is Take, after waiting for the allowances that nodes share. The error is a *LimitError.
func (qs Quotas) takeAhead(ctx context.Context, now time.Time) error {
	for tries := 1; ; tries++ {
		qs.prepare(ctx)
		err := qs.Take(now)
		if err == nil || tries == takeTries || !slices.ContainsFunc(qs, func(q quota) bool { return q.shared != nil && !q.shared.isKnown() }) {
			return err
		}
	}
}

// check reports whether all of them have a query left. The error is a *LimitError.
func (qs Quotas) check(now time.Time) error {
	defer qs.lock()()
	return qs.refusal(now)
}

// Take takes a query from all of them, or from none. The error is a *LimitError.
func (qs Quotas) Take(now time.Time) error {
	defer qs.lock()()
	if err := qs.refusal(now); err != nil {
		return err
	}
	for _, q := range qs {
		q.take(now)
	}
	return nil
}

// giveBack undoes Take, for a query that did not run.
func (qs Quotas) giveBack() {
	defer qs.lock()()
	for _, q := range qs {
		q.giveBack()
	}
}

// refusal returns nil if all of them have a query left. Otherwise it names the spent allowance that the fewest share, and the time after which none
// is spent any more.
func (qs Quotas) refusal(now time.Time) error {
	var spent *quota
	var wait time.Duration
	for i := range qs {
		if q := &qs[i]; q.Left(now) <= 0 {
			spent, wait = q, max(wait, q.next(now))
		}
	}
	if spent == nil {
		return nil
	}
	seconds := inSeconds(wait)
	return &LimitError{
		Owner: spent.owner, Limit: spent.limit, Wait: time.Duration(seconds) * time.Second,
		Detail: fmt.Sprintf("Request was throttled. Expected available in %d seconds.", seconds),
	}
}

// Fields describes the allowances and what is left of them, in the header fields of draft-ietf-httpapi-ratelimit-headers (version 10). The partition
// key of a limit is the name of what it applies to.
func (qs Quotas) Fields(now time.Time) (policy, left string) {
	defer qs.lock()()
	var shares, rest []byte
	for i, q := range qs {
		if i > 0 {
			shares, rest = append(shares, ", "...), append(rest, ", "...)
		}
		shares = appendParameter(appendLimit(shares, q.limit), "q", q.rate.Queries)
		shares = appendPartition(appendParameter(shares, "w", inSeconds(q.rate.Per)), q.partition)
		rest = appendParameter(appendLimit(rest, q.limit), "r", q.shown(now))
		if next := q.next(now); next > 0 {
			rest = appendParameter(rest, "t", inSeconds(next))
		}
		rest = appendPartition(rest, q.partition)
	}
	return string(shares), string(rest)
}

func appendLimit(dst []byte, name LimitName) []byte { return strconv.AppendQuote(dst, string(name)) }

func appendParameter(dst []byte, name string, value int) []byte {
	dst = append(append(append(dst, ';'), name...), '=')
	return strconv.AppendInt(dst, int64(value), 10)
}

func appendPartition(dst []byte, name string) []byte {
	if name == "" {
		return dst
	}
	dst = append(dst, ";pk=:"...)
	return append(base64.StdEncoding.AppendEncode(dst, []byte(name)), ':')
}

// ShownQuotas returns the quotas that an answer mentions: those that it counted on or was refused by. A stored answer costs nothing and mentions none.
func (x *Computation) ShownQuotas(status cache.Status, err error) Quotas {
	if status == cache.Stale { // a refresh for later callers may be in progress
		return nil
	}
	if _, refused := refusedBy(err); refused || x.counted.Load() {
		return x.quotas()
	}
	return nil
}
