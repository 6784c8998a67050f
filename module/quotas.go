package module

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// limitName names a limit in headers and metrics.
type limitName string

const (
	limitEndpoint    limitName = "endpoint"
	limitKey         limitName = "key"
	limitToken       limitName = "token"
	limitConcurrency limitName = "concurrency"
)

// quota is an allowance that a query counts on.
type quota struct {
	*allowance
	limit     limitName
	owner     string // the id of the endpoint, key or token whose it is
	partition string // the name of what the limit holds for, when a caller meets it for several things
}

// quotas are all the allowances that a query counts on, from that which most callers share to that which fewest do. All who take
// from several have them in this order.
type quotas []quota

// quotas are what queries of the execution count on: what its endpoint may cause, whoever sends the runs, what its key may, and
// the token's own share of that.
func (x *execution) quotas() quotas {
	qs := make(quotas, 0, 3)
	if e := x.plan.endpoint; e != nil {
		if r := cmp.Or(e.RateLimit, x.rt.endpointRate); !r.IsZero() {
			qs = append(qs, quota{x.rt.limits.ofEndpoint(e.ID, r), limitEndpoint, e.ID, e.Name})
		}
	}
	qs = append(qs, quota{x.rt.limits.ofKey(x.key.ID), limitKey, x.key.ID, ""})
	if x.token != nil && x.token.allowance != nil {
		qs = append(qs, quota{x.token.allowance, limitToken, x.token.id, ""})
	}
	return qs
}

// owns tells whether an allowance is one of these.
func (qs quotas) owns(owner string) bool {
	return slices.ContainsFunc(qs, func(q quota) bool { return q.owner == owner })
}

func (qs quotas) lock() (unlock func()) {
	for _, q := range qs {
		q.mu.Lock()
	}
	return func() {
		for _, q := range qs {
			q.mu.Unlock()
		}
	}
}

// check tells whether a query could be taken from all of them. The error is a *rateError.
func (qs quotas) check(now time.Time) error {
	defer qs.lock()()
	return qs.refusal(now)
}

// take takes a query from all of them, or from none. The error is a *rateError.
func (qs quotas) take(now time.Time) error {
	defer qs.lock()()
	if err := qs.refusal(now); err != nil {
		return err
	}
	for _, q := range qs {
		q.take(now)
	}
	return nil
}

// giveBack puts back what take took, for a query that did not run.
func (qs quotas) giveBack() {
	defer qs.lock()()
	for _, q := range qs {
		q.giveBack()
	}
}

// refusal is nil when all of them have a query left. It names the owner whom the fewest share, and the time after which none of
// them is spent.
func (qs quotas) refusal(now time.Time) error {
	var spent *quota
	var wait time.Duration
	for i := range qs {
		if q := &qs[i]; q.left(now) <= 0 {
			spent, wait = q, max(wait, q.next(now))
		}
	}
	if spent == nil {
		return nil
	}
	seconds := inSeconds(wait)
	return &rateError{owner: spent.owner, limit: spent.limit, err: throttled(
		fmt.Sprintf("Request was throttled. Expected available in %d seconds.", seconds), time.Duration(seconds)*time.Second)}
}

// show writes what the allowances are and what is left of them, in the fields of draft-ietf-httpapi-ratelimit-headers (version 10). The
// partition key of a limit is the name of what it holds for.
func (qs quotas) show(h http.Header, now time.Time) {
	defer qs.lock()()
	var policy, left []byte
	for i, q := range qs {
		if i > 0 {
			policy, left = append(policy, ", "...), append(left, ", "...)
		}
		policy = appendParameter(appendLimit(policy, q.limit), "q", q.rate.Queries)
		policy = appendPartition(appendParameter(policy, "w", inSeconds(q.rate.Per)), q.partition)
		left = appendParameter(appendLimit(left, q.limit), "r", q.left(now))
		if next := q.next(now); next > 0 {
			left = appendParameter(left, "t", inSeconds(next))
		}
		left = appendPartition(left, q.partition)
	}
	h["Ratelimit-Policy"], h["Ratelimit"] = []string{string(policy)}, []string{string(left)}
}

func appendLimit(dst []byte, name limitName) []byte { return strconv.AppendQuote(dst, string(name)) }

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

// showQuotas tells in the answer's headers what is left to its caller, when the answer counted or was refused by a limit. What was
// stored costs nothing, and says nothing of it.
func (rq *request) showQuotas(x *execution, status cache.Status, err error) {
	if status == cache.Stale { // a refresh for later callers may be under way
		return
	}
	if _, refused := refusedBy(err); refused || x.counted.Load() {
		x.quotas().show(rq.w.Header(), time.Now())
	}
}
