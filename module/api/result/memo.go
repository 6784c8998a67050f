package result

import (
	"encoding/binary"

	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// memoKey holds everything in a request and about its caller that decides what the request means, except for what the registry decides: a plan knows from
// what in the registry it was made. See Recall.
type memoKey struct {
	project  int64
	place    string // the endpoint that is run, or what else distinguishes kinds of requests
	fixed    string // the variables that the key fixes
	query    string // the query string
	format   Format // requested by the path or the headers
	exact    bool   // by the path, which no field may contradict
	bound    bool   // the key can only run endpoints
	mayQuery bool   // the key may run its own queries
}

// append appends the key to the body, which is a part of it, in the body's own buffer. Each text is preceded by its length, and the length of the body
// comes last, in a fixed width: whatever the texts contain, two keys are equal only if all their parts are.
func (k *memoKey) append(body []byte) []byte {
	dst := body
	for _, text := range [...]string{k.place, k.fixed, k.query} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(text)))
		dst = append(dst, text...)
	}
	flags := byte(k.format)
	if k.bound {
		flags |= 1 << 7
	}
	if k.mayQuery {
		flags |= 1 << 6
	}
	if k.exact {
		flags |= 1 << 5
	}
	dst = append(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(k.project)) //nolint:gosec // any number that differs between projects
	return binary.LittleEndian.AppendUint64(dst, uint64(len(body)))
}

// MemoKey returns the key of a request in the memo of plans, appended to its body.
func MemoKey(c *execution.Caller, place, query string, form Format, exact bool, body []byte) []byte {
	key := memoKey{
		project: c.Project.ID, place: place, fixed: c.Key.Fixed, query: query, format: form, exact: exact,
		bound: c.Key.Bound(), mayQuery: c.Key.Allows(QueryScope),
	}
	return key.append(body)
}
