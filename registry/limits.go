package registry

import (
	"cmp"
	"fmt"
	"time"
)

// Limits bound what one project keeps, and so what it costs in memory: the snapshot holds all of it. What is there already stays
// when a limit is lowered; it cannot grow.
type Limits struct {
	// Records is how many of each Kind a project may have, deleted ones that are not purged yet among them. Default: 10,000.
	Records int
	// Bytes is what all records of a project may take together. Default: 256 MiB.
	Bytes int64
}

// The defaults of Limits.
const (
	DefaultRecords      = 10_000
	DefaultRecordsBytes = 256 << 20
)

// The limits that are the same for everybody.
const (
	// MaxRecord is the most bytes of an insight, a dashboard without its tiles, a version of an endpoint, an action, or a project's settings.
	MaxRecord = 1 << 20
	// MaxSmallRecord is the most bytes of a variable, a tile, an alert, an annotation, a definition, or what else of an endpoint is not in its versions.
	MaxSmallRecord = 64 << 10
	// MaxTiles is the most tiles of a dashboard, deleted ones that are not purged yet among them.
	MaxTiles = 500
	// MaxVersions is the most versions of an endpoint.
	MaxVersions = 1000
	// MaxProperties is the most properties of a project that have a type.
	MaxProperties = 20_000
	// MaxActivities and MaxActivityBytes bound the activity log of a project: the oldest entries go first.
	MaxActivities    = 10_000
	MaxActivityBytes = 64 << 20
	// maxLoggedValue is the most bytes of a value that the activity log shows whole.
	maxLoggedValue = 64 << 10
)

// PurgeAfter is how long a record that was deleted, revoked or has expired can be looked at or restored, unless an operator purges
// sooner.
const PurgeAfter = 30 * 24 * time.Hour

// PurgeSessionsAfter is how long the key of a session that ended is kept.
const PurgeSessionsAfter = 24 * time.Hour

// counted are the kinds of which a project may have as many as Limits.Records says, or a multiple of it, with what their records are
// called. The others have limits of their own, and all count in bytes.
var counted = []struct {
	kind  Kind
	many  string
	times int
}{
	{KindInsight, "insights", 1},
	{KindDashboard, "dashboards", 1},
	{KindEndpoint, "endpoints", 1},
	{KindVariable, "insight variables", 1},
	{KindKey, "keys", 1},
	{KindCohort, "cohorts", 1},
	{KindAction, "actions", 1},
	{KindAlert, "alerts", 1},
	{KindAnnotation, "annotations", 1},
	{KindDeletion, "deletions of people", 10},
	{KindDefinition, "definitions of events and properties", 5},
	{KindTile, "tiles of dashboards", 10},
	{KindVersion, "versions of endpoints", 10},
}

// usedKinds is how many kinds there are at most.
const usedKinds = 24

// Usage is what a project keeps, by rank of the kind.
type Usage [usedKinds]Stored

// Stored is how many records there are, deleted ones too, and what their texts take.
type Stored struct {
	Records int
	Bytes   int64
}

// of returns what there is of a kind.
func (u *Usage) of(kind Kind) Stored { return u[ranks[kind]] }

// count counts something in place of what was there.
func (u *Usage) count(kind Kind, was, is Stored) {
	stored := &u[ranks[kind]]
	stored.Records += is.Records - was.Records
	stored.Bytes += is.Bytes - was.Bytes
}

// bytes is what all records take.
func (u *Usage) bytes() (total int64) {
	for _, stored := range u {
		total += stored.Bytes
	}
	return total
}

// SetLimits changes the limits from the next write on; zeros mean the defaults.
func (r *Registry) SetLimits(l Limits) {
	l.Records, l.Bytes = cmp.Or(l.Records, DefaultRecords), cmp.Or(l.Bytes, DefaultRecordsBytes)
	r.limits.Store(&l)
}

// check refuses what makes a project go beyond its limits, or further beyond them.
func (l *Limits) check(t *tx) error {
	p := t.next.project(t.project)
	if p == nil {
		return nil
	}
	before, after := &t.before, &p.usage
	for _, c := range counted {
		if n, was := after.of(c.kind).Records, before.of(c.kind).Records; n > c.times*l.Records && n > was {
			return limitReached("This project has %d %s, which is the most it can have. Delete some; deleted ones count until they are purged, "+
				"30 days later or by `caddy analytics project purge`.", was, c.many)
		}
	}
	if n, was := after.of(KindProperty).Records, before.of(KindProperty).Records; n > MaxProperties && n > was {
		return limitReached("This project has %d properties with a type, which is the most it can have.", was)
	}
	if n := after.bytes(); n > l.Bytes && n > before.bytes() {
		return limitReached("This would bring the project's records to %d bytes; the limit is %d. Delete some; deleted ones count until "+
			"they are purged, 30 days later or by `caddy analytics project purge`.", n, l.Bytes)
	}
	return nil
}

func limitReached(format string, args ...any) *FieldError {
	return &FieldError{Code: CodeLimit, Message: fmt.Sprintf(format, args...)}
}

func checkSize(field, what string, size, most int) error {
	if size <= most {
		return nil
	}
	return &FieldError{Field: field, Code: CodeTooBig, Message: fmt.Sprintf("%s takes %d bytes; the limit is %d.", what, size, most)}
}

func textBytes(texts ...*string) (size int) {
	for _, text := range texts {
		if text != nil {
			size += len(*text)
		}
	}
	return size
}

func listBytes(texts []string) (size int) {
	for _, text := range texts {
		size += len(text) + len(`"",`)
	}
	return size
}
