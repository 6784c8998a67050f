package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// errBadLines gives the command an exit status that reports lines which were not imported.
var errBadLines = errors.New("some lines were not imported")

func importCommand() *cobra.Command {
	cmd := leaf("import --project <id> [--format <format>] [--map <column>=<field>] [--dry-run] [--learn-types=false] <file>…|-",
		"Imports events, persons, groups and members of cohorts from files: NDJSON, exports of PostHog, Mixpanel and Amplitude, CSV, Parquet",
		cobra.MinimumNArgs(1), runImport)
	cmd.Flags().Int64("project", 0, "the project to import into")
	cmd.Flags().String("format", "", "the format of the files, if it cannot be told from what they contain: ndjson, posthog, mixpanel, mixpanel-people, amplitude, csv or parquet")
	cmd.Flags().StringArray("map", nil, "a column of CSV or Parquet and the field that it becomes, such as email=distinct_id or plan=properties.plan; - leaves it out")
	cmd.Flags().Bool("dry-run", false, "read and count, and write nothing")
	cmd.Flags().Bool("learn-types", true, "type new properties by the first value seen")
	mustRequire(cmd, "project")
	return cmd
}

func runImport(cmd *cobra.Command, args []string) (any, error) {
	mapping, err := cmd.Flags().GetStringArray("map")
	if err != nil {
		return nil, fmt.Errorf("BUG: %w", err)
	}
	query := url.Values{
		"project": {strconv.FormatInt(number(cmd, "project"), 10)}, "format": {text(cmd, "format")}, "map": mapping,
		"learn_types": {strconv.FormatBool(flag(cmd, "learn-types"))}, "dry_run": {strconv.FormatBool(flag(cmd, "dry-run"))},
	}
	if err := readable(args); err != nil {
		return nil, err
	}
	var all []adminapi.Import
	bad := 0
	for n, name := range args {
		report, err := importFile(cmd, name, query)
		if err != nil {
			if n > 0 {
				err = fmt.Errorf("%w (the files named before it were imported)", err)
			}
			return nil, err
		}
		tell(cmd.ErrOrStderr(), &report)
		bad += report.Bad
		all = append(all, report)
	}
	if bad > 0 {
		err = fmt.Errorf("%w: %d", errBadLines, bad)
	}
	return sum(all), err
}

// readable checks all files before the first is imported.
func readable(names []string) error {
	for _, name := range names {
		if name == "-" {
			continue
		}
		file, err := os.Open(name) //nolint:gosec // the operator names the file
		if err != nil {
			return fmt.Errorf("opening the events: %w", err)
		}
		info, err := file.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder: name the files in it", name)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("opening the events: %w", err)
		}
	}
	return nil
}

// importFile sends a file to the server. An interrupt ends the import and reports its progress.
func importFile(cmd *cobra.Command, name string, query url.Values) (adminapi.Import, error) {
	input, size, shown := io.Reader(os.Stdin), int64(-1), "standard input"
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the operator names the file
		if err != nil {
			return adminapi.Import{}, fmt.Errorf("opening the events: %w", err)
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return adminapi.Import{}, fmt.Errorf("opening the events: %w", err)
		}
		input, size, shown = file, info.Size(), name
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		bar := progressbar.NewOptions64(size, progressbar.OptionSetWriter(cmd.ErrOrStderr()), progressbar.OptionSetDescription("importing "+shown),
			progressbar.OptionShowBytes(true), progressbar.OptionShowTotalBytes(size > 0), progressbar.OptionClearOnFinish())
		reader := progressbar.NewReader(input, bar)
		defer reader.Close()
		input = &reader
	}
	run := uuid.NewString()
	query.Set("run", run)
	query.Set("name", filepath.Base(shown))
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	type answer struct {
		report adminapi.Import
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		report, err := call[adminapi.Import](cmd, http.MethodPost, "/analytics/import?"+query.Encode(), onlyReader{input})
		answered <- answer{report, err}
	}()
	select {
	case <-interrupted:
		return adminapi.Import{}, interruptedAt(cmd, run, shown)
	case a := <-answered:
		a.report.File = shown
		if a.err != nil {
			a.err = fmt.Errorf("%s: %w", shown, a.err)
		}
		return a.report, a.err
	}
}

// interruptedAt asks the server how far an interrupted import came.
func interruptedAt(cmd *cobra.Command, run, name string) error {
	progress, err := call[adminapi.ImportProgress](cmd, http.MethodGet, "/analytics/import?run="+run, nil)
	if err != nil {
		return fmt.Errorf("interrupted in %s: run the same command again to continue", name)
	}
	return fmt.Errorf("interrupted in %s: %d events are in, up to line %d; run the same command again to continue: it skips what is already imported",
		name, progress.Events, progress.Line)
}

// tell reports the outcome of a file.
func tell(stderr io.Writer, report *adminapi.Import) {
	for _, bad := range report.BadLines {
		fmt.Fprintf(stderr, "line %d: %s\n", bad.Line, bad.Reason)
	}
	if more := report.Bad - len(report.BadLines); more > 0 {
		fmt.Fprintf(stderr, "and %s\n", english.Plural(more, "more bad line", ""))
	}
	for _, field := range report.Unknown {
		fmt.Fprintf(stderr, "%s: %s%s\n", field.Name, english.Plural(field.Lines, "line", ""), meant(field.Meant))
	}
	switch {
	case report.MoreFields > 0:
		fmt.Fprintf(stderr, "these fields and at least %d others are unknown and were ignored\n", report.MoreFields)
	case len(report.Unknown) > 0:
		fmt.Fprintln(stderr, "these fields are unknown and were ignored")
	}
	if len(report.Columns) > 0 {
		fmt.Fprintf(stderr, "columns that became properties: %s\n", strings.Join(report.Columns, ", "))
	}
	did := "imported"
	if report.DryRun {
		did = "would import"
	}
	fmt.Fprintf(stderr, "%s %s (%d already existed), %s and %s from %s\n", did, english.Plural(report.Events, "event", "events"), report.Duplicates,
		english.Plural(report.Persons, "person", "people"), english.Plural(report.Groups, "group", "groups"), report.File)
	if report.DryRun {
		tellRehearsal(stderr, report)
	}
	if report.Skipped > 0 {
		fmt.Fprintf(stderr, "left out %s that the export marks as deleted\n", english.Plural(report.Skipped, "person", "people"))
	}
	if report.Cohorts > 0 && !report.DryRun {
		fmt.Fprintf(stderr, "added %s to cohorts\n", english.Plural(report.Members, "person", "people"))
	}
	if report.TooOld > 0 {
		fmt.Fprintf(stderr, "left out %s older than the project keeps\n", english.Plural(report.TooOld, "event", ""))
	}
	if report.LeftOut > 0 {
		fmt.Fprintf(stderr, "left out %s, the first in line %d: a person or group can have %d\n",
			english.Plural(report.LeftOut, "property", "properties"), report.LeftOutAt, record.MaxNames)
	}
	if report.Untyped {
		fmt.Fprintf(stderr, "the project has types for %d properties, which is the most it can have: others read as text\n", registry.MaxProperties)
	}
}

// tellRehearsal reports the outcome of a dry run.
func tellRehearsal(stderr io.Writer, report *adminapi.Import) {
	fmt.Fprintf(stderr, "nothing was written; the format is %s; %s would be new\n", report.Format, english.Plural(report.People, "person", "people"))
	if report.First != nil {
		fmt.Fprintf(stderr, "events from %s to %s\n", report.First.Format(time.RFC3339), report.Last.Format(time.RFC3339))
	}
	if len(report.Learned) > 0 {
		types := make([]string, len(report.Learned))
		for n, p := range report.Learned {
			types[n] = p.Name + " " + p.As
		}
		fmt.Fprintf(stderr, "new property types: %s\n", strings.Join(types[:min(len(types), 50)], ", "))
	}
}

func meant(name string) string {
	if name == "" {
		return ""
	}
	return " (did you mean " + name + "?)"
}

// sum adds up the reports of several files. A single report stays as it is.
func sum(all []adminapi.Import) adminapi.Import {
	if len(all) == 1 {
		return all[0]
	}
	out := adminapi.Import{Files: all, Format: all[0].Format, DryRun: all[0].DryRun, Unknown: []adminapi.Unknown{}, BadLines: []adminapi.BadLine{}, Learned: []adminapi.Property{}}
	for _, one := range all {
		out.Events, out.Duplicates, out.Persons, out.Groups = out.Events+one.Events, out.Duplicates+one.Duplicates, out.Persons+one.Persons, out.Groups+one.Groups
		out.People, out.Merged, out.Cohorts, out.Members = out.People+one.People, out.Merged+one.Merged, out.Cohorts+one.Cohorts, out.Members+one.Members
		out.LeftOut, out.Bad, out.Skipped, out.Seconds = out.LeftOut+one.LeftOut, out.Bad+one.Bad, out.Skipped+one.Skipped, out.Seconds+one.Seconds
		out.TooOld, out.MoreFields, out.Untyped = out.TooOld+one.TooOld, out.MoreFields+one.MoreFields, out.Untyped || one.Untyped
		out.Unknown = addUnknown(out.Unknown, one.Unknown)
		out.Columns = addNew(out.Columns, one.Columns, func(a, b string) bool { return a == b })
		out.Learned = addNew(out.Learned, one.Learned, func(a, b adminapi.Property) bool { // in a dry run, each file learns for itself
			return a.Type == b.Type && a.Group == b.Group && a.Name == b.Name
		})
		out.GroupTypes = one.GroupTypes
		if one.First != nil && (out.First == nil || one.First.Before(*out.First)) {
			out.First = one.First
		}
		if one.Last != nil && (out.Last == nil || one.Last.After(*out.Last)) {
			out.Last = one.Last
		}
	}
	slices.SortStableFunc(out.Unknown, func(a, b adminapi.Unknown) int { return cmp.Compare(b.Lines, a.Lines) })
	return out
}

// addNew appends the items that are not there yet.
func addNew[T any](there, items []T, same func(a, b T) bool) []T {
	for _, item := range items {
		if !slices.ContainsFunc(there, func(t T) bool { return same(t, item) }) {
			there = append(there, item)
		}
	}
	return there
}

// addUnknown adds fields, and the lines of those that are there already.
func addUnknown(there, fields []adminapi.Unknown) []adminapi.Unknown {
	for _, field := range fields {
		if n := slices.IndexFunc(there, func(u adminapi.Unknown) bool { return u.Name == field.Name }); n >= 0 {
			there[n].Lines += field.Lines
		} else {
			there = append(there, field)
		}
	}
	return there
}

// onlyReader hides the Close method of a reader: the HTTP client would close standard input.
type onlyReader struct{ io.Reader }
