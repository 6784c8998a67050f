package registry

import (
	"cmp"
	"context"
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
	// MaxRecord is the most bytes of an insight, a dashboard without its tiles, a version of an endpoint, or a project's settings.
	MaxRecord = 1 << 20
	// MaxSmallRecord is the most bytes of a variable, a tile, or what else of an endpoint is not in its versions.
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

// Kind is a kind of records.
type Kind string

// The kinds of records.
const (
	KindInsight   Kind = "insight"
	KindDashboard Kind = "dashboard"
	KindTile      Kind = "tile"
	KindEndpoint  Kind = "endpoint"
	KindVersion   Kind = "version"
	KindVariable  Kind = "variable"
	KindKey       Kind = "key"
	KindCohort    Kind = "cohort"
	KindProperty  Kind = "property"
	KindActivity  Kind = "activity" // entries of the activity log, which only the store keeps
)

// Kinds are all kinds of records.
var Kinds = []Kind{
	KindInsight, KindDashboard, KindTile, KindEndpoint, KindVersion, KindVariable, KindKey, KindCohort, KindProperty, KindActivity,
}

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
	{KindTile, "tiles of dashboards", 10},
	{KindVersion, "versions of endpoints", 10},
}

// Usage is what a project keeps, by kind.
type Usage map[Kind]Stored

// Stored is how many records there are, deleted ones too, and what their texts take.
type Stored struct {
	Records int
	Bytes   int64
}

// bytes is what all records take that are in memory.
func (u Usage) bytes() int64 {
	var total int64
	for kind, stored := range u {
		if kind != KindActivity {
			total += stored.Bytes
		}
	}
	return total
}

// SetLimits changes the limits from the next write on; zeros stand for the defaults.
func (r *Registry) SetLimits(l Limits) {
	l.Records, l.Bytes = cmp.Or(l.Records, DefaultRecords), cmp.Or(l.Bytes, DefaultRecordsBytes)
	r.limits.Store(&l)
}

// bounded runs do in a transaction that holds the limits of a project: whatever do writes, no record is too large, and the project
// keeps no more than it may. Project 0 is for what adds nothing.
func (r *Registry) bounded(ctx context.Context, project int64, tx Tx, do func(Tx) error) error {
	if project == 0 {
		return do(tx)
	}
	before, err := tx.Usage(ctx, project)
	if err != nil {
		return err
	}
	if err := do(sizedTx{tx}); err != nil {
		return err
	}
	after, err := tx.Usage(ctx, project)
	if err != nil {
		return err
	}
	if log := after[KindActivity]; log.Records > MaxActivities || log.Bytes > MaxActivityBytes {
		// A tenth more than is needed, so that the next entries cost nothing.
		if err := tx.TrimActivities(ctx, project, MaxActivities-MaxActivities/10, MaxActivityBytes-MaxActivityBytes/10); err != nil {
			return err
		}
	}
	return r.limits.Load().check(before, after)
}

// check refuses what makes a project go beyond its limits, or further beyond them.
func (l *Limits) check(before, after Usage) error {
	for _, c := range counted {
		if n := after[c.kind].Records; n > c.times*l.Records && n > before[c.kind].Records {
			return limitReached("This project has %d %s, which is the most it can have. Delete some; deleted ones count until they are purged, "+
				"30 days later or by `caddy analytics project purge`.", before[c.kind].Records, c.many)
		}
	}
	if n := after[KindProperty].Records; n > MaxProperties && n > before[KindProperty].Records {
		return limitReached("This project has %d properties with a type, which is the most it can have.", before[KindProperty].Records)
	}
	if n := after.bytes(); n > l.Bytes && n > before.bytes() {
		return limitReached("With this, the saved records of this project take %d bytes, and they can take %d. Delete some; deleted ones count until "+
			"they are purged, 30 days later or by `caddy analytics project purge`.", n, l.Bytes)
	}
	return nil
}

func limitReached(format string, args ...any) *FieldError {
	return &FieldError{Code: CodeLimit, Message: fmt.Sprintf(format, args...)}
}

// sizedTx is a transaction that takes no record that is too large.
type sizedTx struct{ Tx }

func checkSize(field, what string, size, most int) error {
	if size <= most {
		return nil
	}
	return &FieldError{Field: field, Code: CodeTooBig, Message: fmt.Sprintf("%s takes %d bytes, and can take %d.", what, size, most)}
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

func (i *Insight) checkSize() error {
	size := len(i.Query) + len(i.Filters) + textBytes(i.Name, i.DerivedName, i.Description) + listBytes(i.Tags)
	return checkSize("query", "This insight", size, MaxRecord)
}

func (d *Dashboard) checkSize() error {
	size := len(d.Filters) + len(d.Variables) + len(d.BreakdownColor) + len(d.Description) + textBytes(d.Name) + listBytes(d.Tags)
	return checkSize("filters", "This dashboard", size, MaxRecord)
}

func (t *Tile) checkSize() error {
	size := len(t.Layouts) + len(t.FilterOverrides) + textBytes(t.Color)
	if t.Text != nil {
		size += textBytes(t.Text.Body)
	}
	return checkSize("tiles", "This tile", size, MaxSmallRecord)
}

func (e *Endpoint) checkSize() error {
	return checkSize("tags", "This endpoint", listBytes(e.Tags), MaxSmallRecord)
}

func (v *Version) checkSize() error {
	size := len(v.Query) + len(v.Description) + listBytes(v.OptionalBreakdowns)
	for _, c := range v.Columns {
		size += len(c.Name) + len(c.Type) + len(c.ClickHouse)
	}
	return checkSize("query", "This version of the endpoint", size, MaxRecord)
}

func (v *Variable) checkSize() error {
	size := len(v.Name) + len(mustJSON(v.Default)) + len(mustJSON(v.Values))
	return checkSize("default_value", "This variable", size, MaxSmallRecord)
}

// UpdateProject changes a project whose settings are not too large.
func (t sizedTx) UpdateProject(ctx context.Context, p Project) error {
	if err := checkSize("test_account_filters", "The settings of the project", len(p.TestAccountFilters)+len(p.PathCleaningFilters), MaxRecord); err != nil {
		return err
	}
	return t.Tx.UpdateProject(ctx, p)
}

// InsertInsight adds an insight that is not too large.
func (t sizedTx) InsertInsight(ctx context.Context, i Insight) (int64, error) {
	if err := i.checkSize(); err != nil {
		return 0, err
	}
	return t.Tx.InsertInsight(ctx, i)
}

// UpdateInsight changes an insight that is not too large.
func (t sizedTx) UpdateInsight(ctx context.Context, i Insight) error {
	if err := i.checkSize(); err != nil && !i.Deleted { // what was too large before there was a limit can be deleted
		return err
	}
	return t.Tx.UpdateInsight(ctx, i)
}

// InsertDashboard adds a dashboard that is not too large.
func (t sizedTx) InsertDashboard(ctx context.Context, d Dashboard) (int64, error) {
	if err := d.checkSize(); err != nil {
		return 0, err
	}
	return t.Tx.InsertDashboard(ctx, d)
}

// UpdateDashboard changes a dashboard that is not too large.
func (t sizedTx) UpdateDashboard(ctx context.Context, d Dashboard) error {
	if err := d.checkSize(); err != nil && !d.Deleted {
		return err
	}
	return t.Tx.UpdateDashboard(ctx, d)
}

// InsertTile adds a tile that is not too large to a dashboard that has room for it.
func (t sizedTx) InsertTile(ctx context.Context, tile Tile) (int64, error) {
	if err := tile.checkSize(); err != nil {
		return 0, err
	}
	d, err := t.Dashboard(ctx, tile.Project, tile.Dashboard)
	if err != nil {
		return 0, err
	}
	if len(d.Tiles) >= MaxTiles {
		return 0, limitReached("Dashboard %d has %d tiles, which is the most it can have. Delete some; deleted ones count until they are purged, "+
			"30 days later or by `caddy analytics project purge`.", d.ID, len(d.Tiles))
	}
	return t.Tx.InsertTile(ctx, tile)
}

// UpdateTile changes a tile that is not too large.
func (t sizedTx) UpdateTile(ctx context.Context, tile Tile) error {
	if err := tile.checkSize(); err != nil && !tile.Deleted {
		return err
	}
	return t.Tx.UpdateTile(ctx, tile)
}

// InsertEndpoint adds an endpoint that is not too large.
func (t sizedTx) InsertEndpoint(ctx context.Context, e Endpoint) error {
	if err := e.checkSize(); err != nil {
		return err
	}
	for i := range e.Versions {
		if err := e.Versions[i].checkSize(); err != nil {
			return err
		}
	}
	return t.Tx.InsertEndpoint(ctx, e)
}

// UpdateEndpoint changes an endpoint that is not too large.
func (t sizedTx) UpdateEndpoint(ctx context.Context, e Endpoint) error {
	if err := e.checkSize(); err != nil {
		return err
	}
	return t.Tx.UpdateEndpoint(ctx, e)
}

// InsertVersion adds a version that is not too large to an endpoint that has room for it.
func (t sizedTx) InsertVersion(ctx context.Context, endpoint string, v Version) error {
	if v.Number > MaxVersions {
		return limitReached("This endpoint has %d versions, which is the most it can have. Publish the query under another name, or delete the endpoint first.", MaxVersions)
	}
	if err := v.checkSize(); err != nil {
		return err
	}
	return t.Tx.InsertVersion(ctx, endpoint, v)
}

// UpdateVersion changes a version that is not too large.
func (t sizedTx) UpdateVersion(ctx context.Context, endpoint string, v Version) error {
	if err := v.checkSize(); err != nil {
		return err
	}
	return t.Tx.UpdateVersion(ctx, endpoint, v)
}

// InsertVariable adds a variable that is not too large.
func (t sizedTx) InsertVariable(ctx context.Context, v Variable) error {
	if err := v.checkSize(); err != nil {
		return err
	}
	return t.Tx.InsertVariable(ctx, v)
}

// UpdateVariable changes a variable that is not too large.
func (t sizedTx) UpdateVariable(ctx context.Context, v Variable) error {
	if err := v.checkSize(); err != nil {
		return err
	}
	return t.Tx.UpdateVariable(ctx, v)
}

// InsertActivity adds an entry whose values are cut to what the log shows.
func (t sizedTx) InsertActivity(ctx context.Context, a Activity) error {
	for i := range a.Changes {
		for _, value := range []*[]byte{(*[]byte)(&a.Changes[i].Before), (*[]byte)(&a.Changes[i].After)} {
			if size := len(*value); size > maxLoggedValue {
				*value = mustJSON(fmt.Sprintf("%d bytes, too many for the log", size))
			}
		}
	}
	return t.Tx.InsertActivity(ctx, a)
}
