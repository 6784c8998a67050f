package registry

import (
	"cmp"
	"fmt"
	"time"
)

// Limits bound what one project keeps, and so what it costs in memory: the snapshot holds all of it. When a limit is lowered, what is there stays, but cannot
// grow.
type Limits struct {
	// Records is how many records of each Kind a project may have, including deleted ones that are not purged yet. Default: 10,000.
	Records int
	// Bytes is how many bytes all records of a project may take together. Default: 256 MiB.
	Bytes int64
}

// The defaults of Limits.
const (
	DefaultRecords      = 10_000
	DefaultRecordsBytes = 256 << 20
)

// The limits that are the same for all projects.
const (
	// MaxRecord is the most bytes of an insight, a dashboard without its tiles, a version of an endpoint, an action, or a project's settings.
	MaxRecord = 1 << 20
	// MaxSmallRecord is the most bytes of a variable, a tile, an alert, an annotation, a definition, or an endpoint without its versions.
	MaxSmallRecord = 64 << 10
	// MaxTiles is the most tiles of a dashboard, including deleted ones that are not purged yet.
	MaxTiles = 500
	// MaxVersions is the most versions of an endpoint.
	MaxVersions = 1000
	// MaxProperties is the most properties of a project that have a type.
	MaxProperties = 20_000
	// MaxActivities and MaxActivityBytes limit the activity log of a project: the oldest entries go first.
	MaxActivities    = 10_000
	MaxActivityBytes = 64 << 20
	// MaxViews is the most insights that a project's keys are known to have viewed, counted by insight and key: the views of the longest ago go first.
	MaxViews = 100_000
	// maxLoggedValue is the most bytes of a value that the activity log records in full.
	maxLoggedValue = 64 << 10
)

// PurgeAfter is how long a record that was deleted, revoked or has expired can be viewed or restored, unless an operator purges it sooner.
const PurgeAfter = 30 * 24 * time.Hour

// PurgeSessionsAfter is how long the key of a session is kept after it has ended.
const PurgeSessionsAfter = 24 * time.Hour

// counted lists the kinds whose number in a project is limited by Limits.Records, or a multiple of it, with the name of their records. The other kinds have
// limits of their own. All count towards Limits.Bytes.
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

// Stored is the number of records, including deleted ones, and the bytes of their texts.
type Stored struct {
	Records int
	Bytes   int64
}

// of returns what there is of a kind.
func (u *Usage) of(kind Kind) Stored { return u[ranks[kind]] }

// count counts is in place of was.
func (u *Usage) count(kind Kind, was, is Stored) {
	stored := &u[ranks[kind]]
	stored.Records += is.Records - was.Records
	stored.Bytes += is.Bytes - was.Bytes
}

// bytes returns how many bytes all records take.
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

// check refuses a write that makes a project exceed its limits, or exceed them further.
func (l *Limits) check(t *tx) error {
	p := t.next.project(t.project)
	if p == nil {
		return nil
	}
	before, after := &t.before, &p.usage
	for _, c := range counted {
		if n, was := after.of(c.kind).Records, before.of(c.kind).Records; n > c.times*l.Records && n > was {
			return limitReached("%s Delete some; deleted ones count until they are purged, 30 days later or by `caddy analytics project purge`.",
				overLimit(was, n, c.times*l.Records, c.many))
		}
	}
	if n, was := after.of(KindProperty).Records, before.of(KindProperty).Records; n > MaxProperties && n > was {
		return limitReached("%s", overLimit(was, n, MaxProperties, "properties with a type"))
	}
	if n := after.bytes(); n > l.Bytes && n > before.bytes() {
		return limitReached("This would bring the project's records to %d bytes; the limit is %d. Delete some; deleted ones count until "+
			"they are purged, 30 days later or by `caddy analytics project purge`.", n, l.Bytes)
	}
	return nil
}

// overLimit says that a project cannot have n records of a kind in place of was.
func overLimit(was, n, most int, many string) string {
	if was == most {
		return fmt.Sprintf("This project has %d %s, which is the most it can have.", was, many)
	}
	return fmt.Sprintf("This would bring the project to %d %s; the limit is %d.", n, many, most)
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

// checkUndeleted checks a record unless it is deleted: what was too large before there was a limit can still be deleted.
func checkUndeleted(deleted bool, check func() error) error {
	if deleted {
		return nil
	}
	return check()
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
