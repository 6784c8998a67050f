// Package backups makes backups of a running server and restores them: its registry, the log of captured events, and the tables of the
// embedded engine.
package backups

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/backup"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The folders of a backup.
const (
	registryFolder = "registry"
	journalFolder  = "journal"
	engineFolder   = "engine" // has a folder for each table, with a folder for each part
)

// Config says what is backed up.
type Config struct {
	Registry  *registry.Registry
	Shards    *warehouse.Shards
	Journal   *journal.Journal
	DataDir   string // the server's
	EngineDir string // the data folder of the embedded engine; empty with a ClickHouse server
	Program   string // the version of this program
	Logger    *zap.Logger
	// Gate is that of the data folder. Default: one of its own.
	Gate *Gate
	// Restored is called once the registry is that of the backup, before anything is written to its projects.
	Restored func(ctx context.Context) error
}

// Gate lets one backup of a data folder be made or restored at a time, whatever the config of the Backups that do it.
type Gate struct {
	busy     sync.Mutex
	creating sync.RWMutex // locked by a restore, and read-locked while a project is created
}

// Backups makes and restores backups, one at a time.
type Backups struct{ Config }

// New returns Backups.
func New(config Config) *Backups {
	if config.Gate == nil {
		config.Gate = new(Gate)
	}
	return &Backups{config}
}

// RefusedError is the reason why something is not done. Nothing was changed.
type RefusedError struct{ Reason error }

func (e *RefusedError) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }

func refused(format string, args ...any) error {
	return &RefusedError{fmt.Errorf(format, args...)}
}

// Progress is called with what is being done, and how many bytes of how many are done.
type Progress func(doing string, done, total int64)

// counter reports bytes as they are done.
type counter struct {
	report      Progress
	doing       string
	done, total int64
}

func (c *counter) add(bytes int64) {
	c.done += bytes
	c.report(c.doing, c.done, c.total)
}

// begin keeps other backups and restores from beginning until release is called.
func (b *Backups) begin() (release func(), err error) {
	sharded := func(p *registry.Project) bool { return p.Shard != "" }
	if b.Shards.Several() || slices.ContainsFunc(b.Registry.Snapshot().Projects(), sharded) {
		return nil, refused("projects are spread over several ClickHouse shards, and this backup would cover only one: run ClickHouse's BACKUP on each shard instead")
	}
	if !b.Gate.busy.TryLock() {
		return nil, refused("another backup is being made or restored by this server: try again when it is done")
	}
	return b.Gate.busy.Unlock, nil
}

// checkFolder refuses folders that a backup can't be in.
func (b *Backups) checkFolder(path string) error {
	if !filepath.IsAbs(path) {
		return refused("%q is not an absolute path", path)
	}
	within, err := filepath.Rel(b.DataDir, path)
	if err == nil && within != ".." && !strings.HasPrefix(within, ".."+string(filepath.Separator)) {
		return refused("%s is in the data folder of the server: a backup there would be lost with it", path)
	}
	return nil
}

// openFolder opens a folder of backups for reading.
func (b *Backups) openFolder(path string) (folder *backup.Folder, release func(), err error) {
	if err := b.checkFolder(path); err != nil {
		return nil, nil, err
	}
	if folder, err = backup.Open(path); err != nil {
		return nil, nil, &RefusedError{err}
	}
	unlock, err := folder.Lock(false)
	if err != nil {
		return nil, nil, errors.Join(&RefusedError{err}, folder.Close())
	}
	return folder, func() { unlock(); _ = folder.Close() }, nil
}

// List describes the backups in a folder. With verify it reads all files.
func (b *Backups) List(ctx context.Context, path string, verify bool, report Progress) (*adminapi.Backups, error) {
	folder, release, err := b.openFolder(path)
	if err != nil {
		return nil, err
	}
	defer release()
	names, err := folder.List()
	if err != nil {
		return nil, err
	}
	out := &adminapi.Backups{Backups: []adminapi.Backup{}}
	for _, name := range names {
		one, err := look(ctx, folder, name, verify, report)
		if err != nil {
			return nil, err
		}
		out.Backups = append(out.Backups, one)
	}
	return out, nil
}

// look describes a backup and checks whether it is whole.
func look(ctx context.Context, folder *backup.Folder, name string, verify bool, report Progress) (adminapi.Backup, error) {
	m, err := folder.Read(name)
	if err != nil {
		return adminapi.Backup{Name: name, Damage: err.Error()}, nil //nolint:nilerr // the answer reports it
	}
	one := describe(m)
	if verify {
		c := counter{report: report, doing: "verifying " + name, total: one.Bytes}
		err = folder.Check(ctx, m, c.add)
	} else {
		for _, file := range m.Files {
			if err = folder.Stat(file); err != nil {
				break
			}
		}
	}
	if ctx.Err() != nil {
		return one, context.Cause(ctx)
	}
	if err != nil {
		one.Whole, one.Damage = false, err.Error()
	}
	return one, nil
}

func describe(m *backup.Manifest) adminapi.Backup {
	out := adminapi.Backup{
		Name: m.Name, Time: m.Time, Bytes: m.Bytes(), NewBytes: m.NewBytes, Files: len(m.Files), Projects: len(m.Projects),
		Waiting: m.Waiting, Program: m.Program, Tables: "in the backup", Whole: true,
	}
	for _, p := range m.Projects {
		out.Events += p.Events
	}
	if m.Server {
		out.Tables = m.Destination
	}
	return out
}

// find reads the manifest of the named backup, or of the newest.
func find(folder *backup.Folder, name string) (*backup.Manifest, error) {
	if name == "" {
		names, err := folder.List()
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, refused("%s: %w", folder.Path(), backup.ErrNone)
		}
		name = names[len(names)-1]
	}
	m, err := folder.Read(name)
	if err != nil {
		return nil, &RefusedError{err}
	}
	return m, nil
}

// Unpack writes the files of a backup under their names into a folder that must not exist.
func (b *Backups) Unpack(ctx context.Context, order adminapi.OldBackups, report Progress) (*adminapi.Backup, error) {
	folder, release, err := b.openFolder(order.Folder)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := b.checkFolder(order.Into); err != nil {
		return nil, err
	}
	m, err := find(folder, order.Name)
	if err != nil {
		return nil, err
	}
	if err := makeNew(order.Into); err != nil {
		return nil, err
	}
	c := counter{report: report, doing: "unpacking " + m.Name, total: m.Bytes()}
	for _, file := range m.Files {
		if err := folder.Unpack(ctx, file, filepath.Join(order.Into, filepath.FromSlash(file.Path))); err != nil {
			return nil, err
		}
		c.add(file.Size)
	}
	one := describe(m)
	return &one, nil
}
