package ingest

// maxRefusals is how many refused events of a project are remembered.
const maxRefusals = 1000

// refusals are captured events that ClickHouse refused, by the key of their row, with the reason. They may come again from the journal of a server that was
// killed before it set them aside, and must not change their person again.
type refusals struct {
	reasons map[string]string
	keys    []string // the oldest first
	changed bool     // since they were last kept
}

func newRefusals() *refusals { return &refusals{reasons: map[string]string{}} }

func (r *refusals) add(key, reason string) {
	if _, known := r.reasons[key]; known {
		return
	}
	r.reasons[key], r.changed = reason, true
	r.keys = append(r.keys, key)
	if len(r.keys) > maxRefusals {
		delete(r.reasons, r.keys[0])
		r.keys = append([]string(nil), r.keys[1:]...)
	}
}

// take replaces the refusals by the kept ones, to which another server may have added.
func (r *refusals) take(kept *refusals) { *r = *kept }
