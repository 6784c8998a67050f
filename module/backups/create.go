package backups

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/backup"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Create makes a backup. If it fails, or ctx ends, it leaves nothing in the folder.
func (b *Backups) Create(ctx context.Context, order adminapi.NewBackup, report Progress) (created *adminapi.Created, err error) {
	began := time.Now()
	release, err := b.begin()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := b.checkOrder(order); err != nil {
		return nil, err
	}
	folder, err := backup.Create(order.Folder)
	if errors.Is(err, backup.ErrForeign) {
		err = &RefusedError{err}
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	unlock, err := folder.Lock(true)
	if err != nil {
		return nil, &RefusedError{err}
	}
	defer unlock()
	m, held, err := b.write(ctx, folder, order, report)
	if err != nil {
		return nil, err
	}
	created = &adminapi.Created{Backup: describe(m), Held: held.Seconds()}
	if order.Keep > 0 {
		if created.Removed, err = folder.Prune(order.Keep, m.Name); err != nil {
			return nil, fmt.Errorf("the backup %s was made, but removing old ones failed: %w", m.Name, err)
		}
	}
	created.Seconds = time.Since(began).Seconds()
	b.Logger.Info("made a backup", zap.String("folder", order.Folder), zap.String("name", m.Name), zap.Int64("new_bytes", m.NewBytes),
		zap.Duration("held", held), zap.Duration("took", time.Since(began)))
	return created, nil
}

// destination matches a place where ClickHouse can write a backup. It ends after the parentheses, which excludes settings and further statements.
var destination = regexp.MustCompile(`^[A-Za-z0-9]+\(\s*(?:'(?:[^'\\]|\\.)*'|[A-Za-z0-9_]+)(?:\s*,\s*(?:'(?:[^'\\]|\\.)*'|[A-Za-z0-9_]+))*\s*\)$`)

func (b *Backups) checkOrder(order adminapi.NewBackup) error {
	switch {
	case order.Keep < 0:
		return refused("the number of backups to keep is %d", order.Keep)
	case order.ClickHouseTo != "" && b.EngineDir != "":
		return refused("the tables of the embedded engine are in the backup itself: a destination is for a ClickHouse server")
	case order.ClickHouseTo != "" && !destination.MatchString(order.ClickHouseTo):
		return refused("%s is not a destination of ClickHouse's BACKUP, such as Disk('backups', 'name')", order.ClickHouseTo)
	}
	return b.checkFolder(order.Folder)
}

// frozenName is the folder of frozen parts. It has only letters, because the engine encodes other characters.
const frozenName = "backup"

// write writes a backup, and returns how long writers were held.
func (b *Backups) write(ctx context.Context, folder *backup.Folder, order adminapi.NewBackup, report Progress) (m *backup.Manifest, held time.Duration, err error) {
	last := newest(folder)
	w, err := folder.Begin(time.Now())
	if err != nil {
		return nil, 0, err
	}
	frozen := filepath.Join(embedded.ShadowFolder(b.EngineDir), frozenName)
	if err := b.thaw(frozen); err != nil {
		return nil, 0, errors.Join(err, w.Abort())
	}
	defer func() {
		err = errors.Join(err, b.thaw(frozen))
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	report("waiting for what is being written", 0, 0)
	state, err := b.freeze(ctx, w, order, report)
	if err != nil {
		return nil, 0, err
	}
	files, err := b.files(state, frozen)
	if err != nil {
		return nil, 0, err
	}
	if err := add(ctx, w, files, last, report); err != nil {
		return nil, 0, err
	}
	if err := w.Finish(&state.Manifest); err != nil {
		return nil, 0, err
	}
	return &state.Manifest, state.held, nil
}

// thaw removes the links to frozen parts. They keep on the disk what the engine has merged or deleted since.
func (b *Backups) thaw(frozen string) error {
	if b.EngineDir == "" {
		return nil
	}
	return os.RemoveAll(frozen)
}

// newest returns the newest readable backup; nil for none.
func newest(folder *backup.Folder) *backup.Manifest {
	names, err := folder.List()
	if err != nil {
		return nil // Begin reports it
	}
	for _, name := range slices.Backward(names) {
		if m, err := folder.Read(name); err == nil {
			return m
		}
	}
	return nil
}

// moment is the server's state at the moment of a backup.
type moment struct {
	backup.Manifest

	held     time.Duration
	registry string // the folder with the copy
	journal  string // likewise
	folders  map[string]string
}

// freeze copies what is small and links what is large, while nothing is written to the tables of people and events. The registry comes first: the
// cohort members and endpoint tables that it mentions are already in ClickHouse.
func (b *Backups) freeze(ctx context.Context, w *backup.Writer, order adminapi.NewBackup, report Progress) (_ *moment, err error) {
	s := &moment{folders: map[string]string{}}
	if s.registry, err = w.Stage(registryFolder); err != nil {
		return nil, err
	}
	if s.journal, err = w.Stage(journalFolder); err != nil {
		return nil, err
	}
	release, check, err := b.Shards.Main().Hold(ctx, b.projects())
	if err != nil {
		return nil, err
	}
	defer release()
	began := time.Now()
	defer func() { s.held = time.Since(began) }()
	report("holding events and imports", 0, 0)
	s.Time, s.Program, s.Engine, s.Server = began.UTC(), b.Program, b.Shards.Main().ServerVersion(), b.EngineDir == ""
	if err := b.Registry.Copy(ctx, s.registry); err != nil {
		return nil, err
	}
	projects := b.Registry.Snapshot().Projects() // those of the copy: the tables can take an hour
	if err := b.Journal.Copy(ctx, s.journal); err != nil {
		return nil, err
	}
	s.Waiting = b.Journal.Stats().Events
	if err := b.freezeTables(ctx, s, order.ClickHouseTo); err != nil {
		return nil, err
	}
	if err := check(ctx); err != nil {
		return nil, fmt.Errorf("another server may have written during the backup: %w", err)
	}
	for _, p := range projects {
		project := backup.Project{ID: p.ID, Name: p.Name}
		for _, t := range s.Tables {
			if t.Name == physical.Events {
				project.Events = t.Rows[p.ID]
			}
		}
		s.Projects = append(s.Projects, project)
	}
	return s, nil
}

func (b *Backups) projects() (ids []int64) {
	for _, p := range b.Registry.Snapshot().Projects() {
		ids = append(ids, p.ID)
	}
	return ids
}

func (b *Backups) freezeTables(ctx context.Context, s *moment, to string) error {
	tables, err := b.Shards.Main().StoredTables(ctx)
	if err != nil {
		return fmt.Errorf("listing the tables: %w", err)
	}
	var names []string
	for i := range tables {
		t := &tables[i]
		one := backup.Table{Name: t.Name, Create: t.Create}
		for _, c := range t.Columns {
			one.Columns = append(one.Columns, backup.Column{Name: c.Name, Type: c.Type})
		}
		if one.Rows, err = b.Shards.Main().CountByProject(ctx, t.Name); err == nil && b.EngineDir != "" {
			err = b.Shards.Main().Freeze(ctx, t.Name, frozenName)
		}
		if err != nil && t.Materialized() { // another fill may just have replaced it
			b.Logger.Debug("the table of a materialized endpoint is not in the backup", zap.String("table", t.Name), clickhouse.Logged(err))
			continue
		}
		if err != nil {
			return fmt.Errorf("copying the table %s: %w", t.Name, err)
		}
		names = append(names, t.Name)
		s.Tables, s.folders[t.Name] = append(s.Tables, one), t.Folder
	}
	if to == "" {
		return nil
	}
	s.Destination = to
	return b.Shards.Main().BackUp(ctx, names, to)
}

// source is a file to be backed up.
type source struct {
	path  string // in the backup
	from  string
	size  int64
	part  string // the folder in the backup, for files of tables
	mark  string // the checksum of the part's checksums.txt; empty for other files
	small bool
}

// files lists the files to be backed up.
func (b *Backups) files(s *moment, frozen string) ([]source, error) {
	all, err := below(s.registry, registryFolder)
	if err != nil {
		return nil, err
	}
	more, err := below(s.journal, journalFolder)
	if err != nil || b.EngineDir == "" {
		return append(all, more...), err
	}
	all = append(all, more...)
	root := embedded.Folder(b.EngineDir)
	for _, t := range s.Tables {
		inside, err := filepath.Rel(root, s.folders[t.Name])
		if err != nil || strings.HasPrefix(inside, "..") {
			return nil, fmt.Errorf("BUG: the table %s is in %s", t.Name, s.folders[t.Name])
		}
		parts, err := partsIn(filepath.Join(frozen, inside), path.Join(engineFolder, t.Name))
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 && len(t.Rows) > 0 {
			return nil, fmt.Errorf("BUG: the table %s has rows, and no frozen parts in %s", t.Name, frozen)
		}
		all = append(all, parts...)
	}
	return all, nil
}

// partsIn lists the files of the parts in a folder. A table without rows has no folder.
func partsIn(folder, as string) (all []source, err error) {
	parts, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing parts: %w", err)
	}
	for _, part := range parts {
		name := path.Join(as, part.Name())
		files, err := below(filepath.Join(folder, part.Name()), name)
		if err != nil {
			return nil, err
		}
		list, err := os.ReadFile(filepath.Join(folder, part.Name(), "checksums.txt")) //nolint:gosec // the engine's own folder
		if err != nil {
			return nil, fmt.Errorf("reading a part: %w", err)
		}
		sum := sha256.Sum256(list)
		for i := range files {
			files[i].part, files[i].mark = name, hex.EncodeToString(sum[:])
		}
		all = append(all, files...)
	}
	return all, nil
}

// smallFile is the size below which a file of a part is always read again, because the part's checksums do not cover all such files.
const smallFile = 4 << 10

// below lists the files in a folder.
func below(folder, as string) (all []source, err error) {
	err = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		all = append(all, source{path: path.Join(as, filepath.ToSlash(inside)), from: name, size: info.Size(), small: info.Size() < smallFile})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing what is to be in the backup: %w", err)
	}
	return all, nil
}

// add adds files to a backup. A part that is in the last backup, with the same name and the same checksums, is not read again.
func add(ctx context.Context, w *backup.Writer, files []source, last *backup.Manifest, report Progress) error {
	known := map[string]backup.File{}
	if last != nil {
		for _, f := range last.Files {
			known[f.Path] = f
		}
	}
	c := counter{report: report, doing: "writing " + w.Name()}
	for _, f := range files {
		c.total += f.size
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		old, there := known[f.path]
		same := there && f.mark != "" && !f.small && old.Size == f.size && known[path.Join(f.part, "checksums.txt")].SHA256 == f.mark
		if !same || !w.Keep(old) {
			if err := w.Add(ctx, f.path, f.from); err != nil {
				return err
			}
		}
		c.add(f.size)
	}
	return nil
}
