package module

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
	"github.com/caddy-analytics/caddy-analytics/module/admin"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/module/intake"
)

// importing is the importer and the queue of uploads, with the size limit of this config.
type importing struct {
	*importer

	service *imports.Service
	maxSize int64 // of a file over HTTP
}

// importer imports files. It survives config reloads.
type importer struct {
	intake *intake.Intake
	folder string // for files that have to be read from their end
	runs   admin.ImportRuns
	// The size limit for a file over HTTP that is compressed and has to be read from its end.
	spool atomic.Int64
}

// maxSpool is the size limit for a command's file that is streamed or compressed and has to be read from its end.
const maxSpool = 16 << 30

// openImports takes a share of what imports files.
func (a *App) openImports(rt *runtime, key string) (*importing, error) {
	folder := filepath.Join(a.DataDir, "imports")
	type kept struct {
		*importer
		*imports.Service
	}
	found, err := keep(a, key, func() (kept, func() error, error) {
		one := &importer{
			intake: &intake.Intake{Registry: rt.registry, Shards: rt.Shards, Places: rt.Places, Cache: rt.Cache, Logger: a.logger}, folder: folder,
		}
		one.spool.Store(int64(a.Limits.ImportSize)) // imports begin at once
		service, err := imports.New(imports.Config{
			Folder: folder, Logger: a.logger.Named("imports"), Run: one.file, Transient: execution.StaleIsBetter,
			Gone: func(project int64) bool { return one.intake.Registry.Snapshot().Removal(project) != nil },
		})
		if err != nil {
			return kept{}, nil, err
		}
		return kept{one, service}, service.Close, nil
	})
	if err != nil {
		return nil, err
	}
	return &importing{found.importer, found.Service, int64(a.Limits.ImportSize)}, nil
}

var errNoProject = errors.New("the project was deleted")

// file imports a file that was uploaded over HTTP.
func (i *importer) file(ctx context.Context, request imports.Request, in *os.File, progress func(line, events int)) (*adminapi.Import, error) {
	if i.intake.Registry.Snapshot().Project(request.Project) == nil {
		return nil, &imports.FileError{Err: errNoProject}
	}
	return i.runWithin(ctx, request, in, progress, i.spool.Load())
}

// run imports a command's file.
func (i *importer) run(ctx context.Context, request imports.Request, in io.Reader, progress func(line, events int)) (*adminapi.Import, error) {
	return i.runWithin(ctx, request, in, progress, maxSpool)
}

// runWithin imports a file, keeping at most most bytes of it on disk. What it learns about properties is recorded even if the import fails, because
// the lines before are imported. With an error, it returns what was done before, if anything. It stops when the project is deleted.
func (i *importer) runWithin(
	ctx context.Context, request imports.Request, in io.Reader, progress func(line, events int), most int64,
) (*adminapi.Import, error) {
	start := time.Now()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	wh := i.intake.Shards.Of(request.Project)
	if _, err := wh.Layout(ctx); err != nil {
		return nil, err
	}
	options := i.intake.Options(i.intake.Registry.Snapshot(), request.Project)
	options.LearnTypes, options.DryRun = request.LearnTypes, request.DryRun
	options.Progress = func(r ingest.Report) {
		if i.intake.Registry.Snapshot().Project(request.Project) == nil {
			stop(errNoProject)
		}
		progress(r.Line, r.Events)
	}
	var spooled []func()
	defer func() {
		for _, done := range spooled {
			done()
		}
	}()
	reader := formats.New(in, formats.Options{
		Format: formats.Format(request.Format), Name: request.Name, Map: request.Map, MaxSpool: most, Stopped: ctx.Err,
		Spool: func() (*os.File, error) {
			file, done, err := imports.Spool(i.folder)
			if err == nil {
				spooled = append(spooled, done)
			}
			return file, err
		},
	})
	defer func() { _ = reader.Close() }()
	report, err := wh.Import(ctx, i.intake.Places, options, reader)
	if errors.Is(context.Cause(ctx), errNoProject) {
		return nil, &imports.FileError{Err: errNoProject}
	}
	if !request.DryRun {
		err = errors.Join(err, i.intake.Learned(ctx, request.Project, &report))
	}
	out := importReport(request, &report, reader.Summary(), time.Since(start))
	if reason := reader.Err(); err != nil && reason != nil {
		err = &imports.FileError{Err: fmt.Errorf("%w%s", reason, interruptedText(&report))}
	}
	return out, err
}

// interruptedText describes how far a failed import came.
func interruptedText(report *ingest.Report) string {
	if report.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d events are in, up to line %d: importing again passes over them)", report.Events, report.Line)
}

func importReport(request imports.Request, report *ingest.Report, summary formats.Summary, took time.Duration) *adminapi.Import {
	out := &adminapi.Import{
		Format: string(summary.Format), DryRun: request.DryRun, Events: report.Events, Duplicates: report.Duplicates, Persons: report.Persons,
		People: report.People, Merged: report.Merged, Groups: report.Groups, Cohorts: report.Cohorts, Members: report.Members,
		Unknown: []adminapi.Unknown{}, MoreFields: summary.More, Columns: summary.Columns, Skipped: summary.Skipped,
		Bad: report.Bad, BadLines: []adminapi.BadLine{}, TooOld: report.TooOld, LeftOut: report.LeftOut, LeftOutAt: report.LeftOutAt, Untyped: report.Untyped,
		Learned: []adminapi.Property{}, GroupTypes: []adminapi.GroupType{}, Seconds: took.Seconds(),
	}
	if !report.First.IsZero() {
		out.First, out.Last = &report.First, &report.Last
	}
	for _, field := range summary.Unknown {
		out.Unknown = append(out.Unknown, adminapi.Unknown(field))
	}
	for _, bad := range report.BadLines {
		out.BadLines = append(out.BadLines, adminapi.BadLine(bad))
	}
	for _, g := range report.GroupTypes {
		out.GroupTypes = append(out.GroupTypes, adminapi.GroupType(g))
	}
	for _, l := range report.Learned {
		out.Learned = append(out.Learned, adminapi.Property{Project: request.Project, Type: l.Scope, Group: l.GroupTypeIndex, Name: l.Name, As: l.Type})
	}
	return out
}
