package command

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// errBadLines makes the exit status tell that some lines did not go in.
var errBadLines = errors.New("some lines were not imported")

func importCommand() *cobra.Command {
	cmd := leaf("import --project <id> [--learn-types=false] <file>|-", "Imports events, persons, groups and members of cohorts from NDJSON, plain or gzip",
		cobra.ExactArgs(1), runImport)
	cmd.Flags().Int64("project", 0, "the project to import into")
	cmd.Flags().Bool("learn-types", true, "type new properties by the first value seen")
	mustRequire(cmd, "project")
	return cmd
}

func runImport(cmd *cobra.Command, args []string) (any, error) {
	input, size, name := io.Reader(os.Stdin), int64(-1), "standard input"
	if args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, fmt.Errorf("opening the events: %w", err)
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return nil, fmt.Errorf("opening the events: %w", err)
		}
		input, size, name = file, info.Size(), args[0]
	}
	stderr := cmd.ErrOrStderr()
	if term.IsTerminal(int(os.Stderr.Fd())) {
		bar := progressbar.NewOptions64(size, progressbar.OptionSetWriter(stderr), progressbar.OptionSetDescription("importing "+name),
			progressbar.OptionShowBytes(true), progressbar.OptionShowTotalBytes(size > 0), progressbar.OptionClearOnFinish())
		reader := progressbar.NewReader(input, bar)
		defer reader.Close()
		input = &reader
	}
	query := url.Values{
		"project":     {strconv.FormatInt(number(cmd, "project"), 10)},
		"learn_types": {strconv.FormatBool(flag(cmd, "learn-types"))},
	}
	report, err := call[adminapi.Import](cmd, http.MethodPost, "/analytics/import?"+query.Encode(), onlyReader{input})
	if err != nil {
		return nil, err
	}
	for _, bad := range report.BadLines {
		fmt.Fprintf(stderr, "line %d: %s\n", bad.Line, bad.Reason)
	}
	if more := report.Bad - len(report.BadLines); more > 0 {
		fmt.Fprintf(stderr, "and %d more bad lines\n", more)
	}
	fmt.Fprintf(stderr, "imported %d events (%d were there before), %d persons and %d groups from %s\n",
		report.Events, report.Duplicates, report.Persons, report.Groups, name)
	if report.Cohorts > 0 {
		fmt.Fprintf(stderr, "%d people are new in cohorts\n", report.Members)
	}
	if report.TooOld > 0 {
		fmt.Fprintf(stderr, "%d events were left out, because the project keeps no events as old as these\n", report.TooOld)
	}
	if report.LeftOut > 0 {
		fmt.Fprintf(stderr, "%d properties were left out, the first in line %d: a person or group can have %d\n", report.LeftOut, report.LeftOutAt, record.MaxNames)
	}
	if report.Untyped {
		fmt.Fprintf(stderr, "the project has types for %d properties, which is the most it can have: others read as text\n", registry.MaxProperties)
	}
	if report.Bad > 0 {
		err = fmt.Errorf("%w: %d", errBadLines, report.Bad)
	}
	return report, err
}

// onlyReader hides that a reader can close itself: the HTTP client would close standard input.
type onlyReader struct{ io.Reader }
