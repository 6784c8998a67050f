package result

import (
	"encoding/binary"

	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// memoKey is all of a request and of its caller that decides what the request means. What the registry decides is no part of it: a plan
// knows what of the registry it was made from. See Recall.
type memoKey struct {
	project  int64
	place    string // the endpoint that is run, or what else tells requests of different kinds apart
	fixed    string // the variables that the key fixes
	query    string // the query string
	format   Format // that the address and the headers ask for
	bound    bool   // the key can only run endpoints
	mayQuery bool   // the key may run queries of its own
}

// append writes the key after the body, which is a part of it, in the body's own buffer. Each text has its length in front, and the
// length of the body stands at the end with a fixed width: whatever the texts hold, two keys are the same only if all of their parts are.
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
	dst = append(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(k.project)) //nolint:gosec // any number will do, if it is another for another project
	return binary.LittleEndian.AppendUint64(dst, uint64(len(body)))
}

// MemoKey is the key of a request in the memo of plans, written after its body.
func MemoKey(c *execution.Caller, place, query string, form Format, body []byte) []byte {
	key := memoKey{
		project: c.Project.ID, place: place, fixed: c.Key.Fixed, query: query, format: form,
		bound: c.Key.Bound(), mayQuery: c.Key.Allows(QueryScope),
	}
	return key.append(body)
}
