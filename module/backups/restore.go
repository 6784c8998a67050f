package backups

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/backup"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// BrokenOffError is a restore that is in progress or was interrupted: the file restore.json in the data folder.
type BrokenOffError struct {
	Folder string `json:"folder"`
	Name   string `json:"name"`
	// Tables reports that the tables are complete. From then on there may be projects, and events may come in.
	Tables bool `json:"tables"`
	// Registry reports that the registry is that of the backup. If it is not set, it may be that all the same.
	Registry bool `json:"registry,omitempty"`
}

const (
	markerFile    = "restore.json"
	scratchFolder = "restore"
	// fullPause is how often to look whether a full log has room again.
	fullPause = 100 * time.Millisecond
)

// Error says how to continue.
func (r *BrokenOffError) Error() string {
	return fmt.Sprintf("this server has an interrupted restore. To resume it: caddy analytics backup restore --backup %s %s", r.Name, r.Folder)
}

// BrokenOff returns the interrupted restore of a data folder; nil if there is none.
func BrokenOff(dataDir string) (*BrokenOffError, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, markerFile)) //nolint:gosec // the operator's folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := new(BrokenOffError)
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for an interrupted restore: %w", err)
	}
	return r, nil
}

func (b *Backups) mark(r BrokenOffError) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := wholefile.Write(filepath.Join(b.DataDir, markerFile), bytes.NewReader(text)); err != nil {
		return fmt.Errorf("noting that a restore is under way: %w", err)
	}
	return nil
}

// Creating allows a project to be created, and makes a restore wait until done is called. It refuses while a backup is being restored, and after an
// interrupted restore.
func (b *Backups) Creating() (done func(), err error) {
	if !b.Gate.creating.TryRLock() {
		return nil, refused("a backup is being restored: its projects will be there when that is done")
	}
	broken, err := BrokenOff(b.DataDir)
	if err == nil && broken != nil {
		err = broken
	}
	if err != nil {
		b.Gate.creating.RUnlock()
		return nil, err
	}
	return b.Gate.creating.RUnlock, nil
}

// Restore makes this server, which must have no projects, like the one in the backup. It reads the whole backup before it changes anything. An
// interrupted restore continues when it is called again.
func (b *Backups) Restore(ctx context.Context, order adminapi.OldBackups, report Progress) (*adminapi.Restored, error) {
	began := time.Now()
	release, err := b.begin()
	if err != nil {
		return nil, err
	}
	defer release()
	b.Gate.creating.Lock()
	defer b.Gate.creating.Unlock()
	folder, closeFolder, err := b.openFolder(order.Folder)
	if err != nil {
		return nil, err
	}
	defer closeFolder()
	m, err := find(folder, order.Name)
	if err != nil {
		return nil, err
	}
	r := &restore{Backups: b, folder: folder, m: m, report: report, step: BrokenOffError{Folder: order.Folder, Name: m.Name}}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	b.Logger.Info("restored a backup", zap.String("folder", order.Folder), zap.String("name", m.Name), zap.Duration("took", time.Since(began)))
	return &adminapi.Restored{Backup: describe(m), Seconds: time.Since(began).Seconds()}, nil
}

// restore is a restore in progress.
type restore struct {
	*Backups

	folder *backup.Folder
	m      *backup.Manifest
	report Progress
	step   BrokenOffError
	tables []clickhouse.StoredTable // of this server
	before *registry.Snapshot       // when the projects were last looked at
	last   int64                    // the greatest number of a project that has rows on the ClickHouse server
}

func (r *restore) run(ctx context.Context) (err error) {
	if err := r.check(ctx); err != nil {
		return err
	}
	scratch := filepath.Join(r.DataDir, scratchFolder)
	if err := os.RemoveAll(scratch); err != nil {
		return fmt.Errorf("preparing the restore: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	for _, part := range []string{registryFolder, journalFolder} {
		if err := os.MkdirAll(filepath.Join(scratch, part), 0o700); err != nil {
			return fmt.Errorf("preparing the restore: %w", err)
		}
		if err := r.folder.UnpackBelow(ctx, r.m, part, filepath.Join(scratch, part)); err != nil {
			return err
		}
	}
	if err := r.Registry.Examine(ctx, filepath.Join(scratch, registryFolder)); err != nil {
		return &RefusedError{err}
	}
	release, _, err := r.Shards.Main().Hold(ctx, nil)
	if err != nil {
		return err
	}
	release = sync.OnceFunc(release)
	defer release()
	if err := r.checkAgain(ctx); err != nil {
		return err
	}
	if !r.step.Tables {
		if err := r.attach(ctx); err != nil {
			return err
		}
	}
	r.step.Tables = true
	if err := r.mark(r.step); err != nil {
		return err
	}
	if err := r.replaceRegistry(ctx, filepath.Join(scratch, registryFolder)); err != nil {
		return err
	}
	r.step.Registry = true
	if err := r.mark(r.step); err != nil {
		return err
	}
	if err := r.reserve(ctx); err != nil {
		return err
	}
	for _, p := range r.m.Projects {
		r.Shards.Main().ForgetPeople(p.ID)
	}
	if err := r.Restored(ctx); err != nil {
		return err
	}
	release() // what waits may be more than the log has room for, until it is delivered
	if err := r.deliverAgain(ctx, filepath.Join(scratch, journalFolder)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.DataDir, markerFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("noting that the restore is done: %w", err)
	}
	return wholefile.SyncFolder(r.DataDir)
}

// reserve keeps what rows in the tables belong to from being used for something else. The rows can be newer than the registry: on a ClickHouse server by any
// time, in a backup by the moment between the copies of the two.
func (r *restore) reserve(ctx context.Context) error {
	if err := r.Registry.ReserveProjects(ctx, r.last); err != nil {
		return err
	}
	stored, err := r.Shards.Main().StoredMembers(ctx)
	if err != nil {
		return fmt.Errorf("listing the members of cohorts: %w", err)
	}
	members := make([]registry.StoredMembers, len(stored))
	for i, m := range stored {
		members[i] = registry.StoredMembers(m)
	}
	return r.Registry.ReserveCohorts(ctx, members)
}

// replaceRegistry replaces the registry with that of the backup, unless an earlier restore did. Other servers of the registry may write to it until
// then; nothing of theirs is overwritten.
func (r *restore) replaceRegistry(ctx context.Context, copied string) error {
	if r.step.Registry {
		return nil
	}
	err := r.Registry.Replace(ctx, copied, r.before)
	if !errors.Is(err, registry.ErrStale) {
		return err
	}
	r.step.Tables = false // projects that exist from now on are not those of the backup
	if err := r.mark(r.step); err != nil {
		return err
	}
	return refused("another server wrote to the registry while the backup was being restored: run the command again")
}

// check refuses what can't be restored here, and reads the whole backup.
func (r *restore) check(ctx context.Context) error {
	again, err := r.checkProjects()
	if err != nil {
		return err
	}
	if _, err := r.Shards.Main().Prepare(ctx); err != nil { // also creates the tables of a new ClickHouse server
		return fmt.Errorf("inspecting the tables: %w", err)
	}
	if r.tables, err = r.Shards.Main().StoredTables(ctx); err != nil {
		return fmt.Errorf("listing the tables: %w", err)
	}
	if err := r.checkTables(ctx, again); err != nil {
		return err
	}
	c := counter{report: r.report, doing: "verifying " + r.m.Name, total: r.m.Bytes()}
	if err := r.folder.Check(ctx, r.m, c.add); err != nil {
		if damage, ok := errors.AsType[*backup.DamageError](err); ok {
			return &RefusedError{damage}
		}
		return err
	}
	return nil
}

// checkAgain repeats the checks after reading the backup: other servers of the registry may have created projects meanwhile.
func (r *restore) checkAgain(ctx context.Context) error {
	if err := r.Registry.Refresh(ctx); err != nil {
		return err
	}
	again, err := r.checkProjects()
	if err != nil {
		return err
	}
	return r.checkTables(ctx, again)
}

// checkProjects refuses a server that has projects. again reports whether a restore of this backup was interrupted.
func (r *restore) checkProjects() (again bool, err error) {
	before, err := BrokenOff(r.DataDir)
	if err != nil {
		return false, err
	}
	r.before = r.Registry.Snapshot()
	projects := r.before.Projects()
	switch {
	case before != nil && before.Name == r.step.Name:
		r.step.Tables, r.step.Registry = before.Tables, before.Registry || before.Tables && r.areRestored(projects)
		if !r.step.Registry && len(projects) > 0 {
			return false, refused("this server has projects that were made after an interrupted restore: restore into a new data folder")
		}
	case before != nil:
		return false, &RefusedError{before}
	case len(projects) > 0:
		return false, refused("this server has %s: a backup is restored into a server without projects, with a data folder of its own", count(len(projects), "project"))
	}
	return before != nil, nil
}

// areRestored reports whether the projects are those of the backup: an earlier restore may have ended after it replaced the registry, and before it
// noted that. A project that another server of the registry has created can have the same number and name, but is newer than the backup.
func (r *restore) areRestored(projects []*registry.Project) bool {
	if len(projects) == 0 || len(projects) != len(r.m.Projects) {
		return false
	}
	names := map[int64]string{}
	for _, p := range r.m.Projects {
		names[p.ID] = p.Name
	}
	for _, p := range projects {
		if name, copied := names[p.ID]; !copied || name != p.Name || p.CreatedAt.After(r.m.Time) {
			return false
		}
	}
	return true
}

// checkTables refuses tables that already have rows, or that lack columns of the backup.
func (r *restore) checkTables(ctx context.Context, again bool) error {
	have := map[string]map[string]bool{}
	for _, t := range r.tables {
		columns := map[string]bool{}
		for _, c := range t.Columns {
			columns[c.Name+" "+c.Type] = true
		}
		have[t.Name] = columns
	}
	for _, t := range r.m.Tables {
		for _, c := range t.Columns {
			if !have[t.Name][c.Name+" "+c.Type] {
				return refused("the backup has the column %s %s in the table %s, which this server does not have: "+
					"another version of the program wrote it (%s)", c.Name, c.Type, t.Name, r.m.Program)
			}
		}
	}
	switch {
	case r.EngineDir == "":
		return r.checkServer(ctx)
	case r.m.Server:
		return refused("the backup comes from a server that uses ClickHouse, so the tables are not in it: configure clickhouse, and see docs/backup.md")
	case again:
		return nil
	}
	for _, t := range r.tables {
		rows, err := r.Shards.Main().CountByProject(ctx, t.Name)
		if err != nil {
			return fmt.Errorf("counting the rows of the table %s: %w", t.Name, err)
		}
		if len(rows) > 0 {
			return refused("the table %s of this server has rows: a backup is restored into a server with a data folder of its own", t.Name)
		}
	}
	return nil
}

// checkServer refuses to continue while a ClickHouse server lacks all events or people: the operator has to bring them there. A project may have lost
// the rows of a table since the backup was made: it was deleted, or its cohorts, or the rows were older than it keeps them.
func (r *restore) checkServer(ctx context.Context) error {
	for _, table := range physical.WithoutLogs() {
		rows, err := r.Shards.Main().CountByProject(ctx, table)
		if err != nil {
			return fmt.Errorf("counting the rows of the table %s: %w", table, err)
		}
		for project := range rows {
			r.last = max(r.last, project)
		}
		at := slices.IndexFunc(r.m.Tables, func(copied backup.Table) bool { return copied.Name == table })
		if at < 0 || len(r.m.Tables[at].Columns) == 0 {
			continue
		}
		var missing []int64
		for project := range r.m.Tables[at].Rows {
			if rows[project] == 0 {
				missing = append(missing, project)
			}
		}
		switch {
		case len(missing) == 0:
		case len(rows) == 0 && (table == physical.Events || table == physical.Persons):
			return refused("the table %s on the ClickHouse server has no rows, and had some when the backup was made: "+
				"bring the tables there first, as the documentation of backups says", table)
		default:
			r.Logger.Warn("projects have no rows in a table on the ClickHouse server, and had some when the backup was made",
				zap.String("table", table), zap.Int64s("projects", missing))
		}
	}
	r.step.Tables = true
	return nil
}

// attach attaches the parts of the backup to the tables, and removes what an earlier restore left there.
func (r *restore) attach(ctx context.Context) error {
	if err := r.mark(r.step); err != nil {
		return err
	}
	folders, err := r.emptyTables(ctx)
	if err != nil {
		return err
	}
	c := counter{report: r.report, doing: "restoring the tables", total: r.m.Bytes()}
	for _, t := range r.m.Tables {
		detached := filepath.Join(folders[t.Name], "detached")
		var parts []string
		for _, f := range r.m.Below(engineFolder + "/" + t.Name) {
			inside := strings.TrimPrefix(f.Path, engineFolder+"/"+t.Name+"/")
			part, _, ok := strings.Cut(inside, "/")
			if !ok {
				return fmt.Errorf("the backup has a file that belongs to no part: %s", f.Path)
			}
			if len(parts) == 0 || parts[len(parts)-1] != part {
				parts = append(parts, part)
				if err := os.RemoveAll(filepath.Join(detached, part)); err != nil {
					return fmt.Errorf("restoring the table %s: %w", t.Name, err)
				}
			}
			if err := r.folder.Unpack(ctx, f, filepath.Join(detached, filepath.FromSlash(inside))); err != nil {
				return err
			}
			c.add(f.Size)
		}
		for _, part := range parts {
			if err := r.Shards.Main().AttachPart(ctx, t.Name, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// emptyTables empties the tables of the backup and returns their folders.
func (r *restore) emptyTables(ctx context.Context) (folders map[string]string, err error) {
	if err := r.Shards.Main().EmptyLogs(ctx); err != nil { // the logs are of other projects with the same ids
		return nil, err
	}
	for _, t := range r.m.Tables {
		if len(t.Columns) > 0 {
			err = r.Shards.Main().Truncate(ctx, t.Name)
		} else {
			err = r.Shards.Main().Recreate(ctx, t.Name, t.Create)
		}
		if err != nil {
			return nil, err
		}
	}
	tables, err := r.Shards.Main().StoredTables(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	folders = map[string]string{}
	for _, t := range tables {
		folders[t.Name] = t.Folder
	}
	for _, t := range r.m.Tables {
		if folders[t.Name] == "" {
			return nil, fmt.Errorf("the engine does not say where the table %s is", t.Name)
		}
	}
	return folders, nil
}

// deliverAgain puts the events that waited into the log of this server. Events already in ClickHouse are recognized by their uuid and skipped, also
// when this is done twice.
func (r *restore) deliverAgain(ctx context.Context, copied string) (err error) {
	r.report("restoring events that waited", 0, 0)
	waiting, err := journal.Open(copied, journal.Options{MaxBytes: math.MaxInt64 / 2, Logger: r.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, waiting.Close()) }()
	for last := uint64(0); ; {
		next, err := waiting.Next(last, math.MaxUint64, 16<<20, nil)
		if err != nil {
			return fmt.Errorf("reading events that waited: %w", err)
		}
		if len(next.Entries) == 0 { // all that is left is damaged, and was set aside
			break
		}
		for _, e := range next.Entries {
			if err := r.append(ctx, e); err != nil {
				return fmt.Errorf("restoring events that waited: %w", err)
			}
			last = e.ID
		}
		if err := waiting.Forget(ctx, last); err != nil {
			return fmt.Errorf("restoring events that waited: %w", err)
		}
	}
	return r.Journal.AddAside(ctx, copied)
}

// append appends an entry to the log of this server, when there is room for it.
func (r *restore) append(ctx context.Context, e journal.Entry) error {
	for {
		err := r.Journal.Append(ctx, e)
		if !errors.Is(err, journal.ErrFull) {
			return err
		}
		if err := pause.For(ctx, fullPause); err != nil {
			return err
		}
	}
}

// makeNew creates a folder, which must not exist.
func makeNew(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return refused("%s already exists: name a folder that does not exist", path)
	}
	return err
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
