package command

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
)

// exitChanges is the exit status of a plan that has something to do, if the caller asked for that status.
const exitChanges = 2

var (
	errFileMistakes = errors.New("the files have mistakes; nothing was changed")
	errBreaking     = errors.New("callers would notice these changes; nothing was changed")
)

func endpointsCommand() *cobra.Command {
	var changed bool
	plan := leaf("plan --project <id> [--prune] [--detailed-exitcode] <folder>", "Shows what the files of a folder would change", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			report, err := sendFiles(cmd, "plan", args[0], false)
			changed = err == nil && report.Changed
			return report, err
		})
	show := plan.RunE
	plan.RunE = func(cmd *cobra.Command, args []string) error {
		if err := show(cmd, args); err != nil || !changed || !flag(cmd, "detailed-exitcode") {
			return err
		}
		cmd.SilenceErrors = true // the exit status says it
		return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return exitChanges, nil })(cmd, args)
	}
	plan.Flags().Bool("detailed-exitcode", false, "exit with 2 when there is something to do")

	apply := leaf("apply --project <id> [--prune] [--refuse-breaking] <folder>", "Makes endpoints what the files of a folder say, all of them or none",
		cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) (any, error) {
			return sendFiles(cmd, "apply", args[0], flag(cmd, "refuse-breaking"))
		})
	apply.Flags().Bool("refuse-breaking", false, "change nothing when callers of an endpoint would notice")
	for _, cmd := range []*cobra.Command{plan, apply} {
		cmd.Flags().Bool("prune", false, "delete the endpoints that no file names")
	}

	pull := leaf("pull --project <id> <folder>", "Writes the endpoints of a project as files", cobra.ExactArgs(1), pullFiles)
	for _, cmd := range []*cobra.Command{plan, apply, pull} {
		cmd.Flags().Int64("project", 0, "the project of the endpoints")
		mustRequire(cmd, "project")
	}
	return group("endpoints", "Keeps endpoints in files", plan, apply, pull)
}

// sendFiles makes the server plan or apply the files of a folder, and prints the answer.
func sendFiles(cmd *cobra.Command, action, dir string, refuseBreaking bool) (*adminapi.FilesReport, error) {
	sources, err := endpointfile.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	report, err := call[*adminapi.FilesReport](cmd, http.MethodPost, "/analytics/endpoints/"+action, adminapi.EndpointFiles{
		Project: number(cmd, "project"), Files: sources, Prune: flag(cmd, "prune"), RefuseBreaking: refuseBreaking,
	})
	if err != nil {
		return nil, err
	}
	stderr := cmd.ErrOrStderr()
	if len(report.Mistakes) > 0 {
		for _, mistake := range report.Mistakes {
			fmt.Fprintln(stderr, mistake)
		}
		return nil, errFileMistakes
	}
	describe(stderr, &report.FilesPlan)
	if action == "apply" && !report.Applied {
		return nil, errBreaking
	}
	return report, nil
}

// describe writes a plan for people: a line for each thing that changes, and for each change that callers notice.
func describe(w io.Writer, p *adminapi.FilesPlan) {
	signs := map[adminapi.Action]string{adminapi.Create: "+", adminapi.Update: "~", adminapi.Delete: "-"}
	kept := 0
	for _, v := range p.Variables {
		if sign, ok := signs[v.Action]; ok {
			fmt.Fprintf(w, "%s variable %s%s\n", sign, v.Name, listed(v.Fields))
		}
	}
	for _, e := range p.Endpoints {
		sign, ok := signs[e.Action]
		if !ok && e.Path != "" {
			kept++
		} else if ok {
			version := ""
			if e.Version > 1 {
				version = fmt.Sprintf(", version %d", e.Version)
			}
			fmt.Fprintf(w, "%s endpoint %s%s%s\n", sign, e.Name, listed(e.Fields), version)
		}
		if e.Changes == nil {
			continue
		}
		for _, change := range e.Changes.Breaking {
			fmt.Fprintf(w, "    ! endpoint %s: %s\n", e.Name, change.Detail)
		}
		for _, change := range e.Changes.Compatible {
			fmt.Fprintf(w, "      endpoint %s: %s\n", e.Name, change.Detail)
		}
	}
	fmt.Fprintln(w, english.Plural(kept, "endpoint matches its file", "endpoints match their files"))
	if len(p.Unmanaged) > 0 {
		fmt.Fprintf(w, "%s: %s\n", english.Plural(len(p.Unmanaged), "endpoint has no file and stays", "endpoints have no file and stay"), strings.Join(p.Unmanaged, ", "))
	}
}

func listed(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return ": " + strings.Join(fields, ", ")
}

// pullReport is what a pull did to a folder.
type pullReport struct {
	Written   []string `json:"written"`
	Unchanged []string `json:"unchanged"`
	Unknown   []string `json:"unknown"` // files without an endpoint; they stay
}

// pullFiles writes the endpoints of a project into a folder. A file that already matches stays as it is, with its comments; any other file for the
// same endpoint is replaced. An endpoint without a file gets a new one, beside all that is there.
func pullFiles(cmd *cobra.Command, args []string) (any, error) {
	dir := args[0]
	pulled, err := call[adminapi.EndpointFiles](cmd, http.MethodGet, "/analytics/endpoints?project="+strconv.FormatInt(number(cmd, "project"), 10), nil)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the folder: %w", err)
	}
	there, err := filesByName(dir)
	if err != nil {
		return nil, err
	}
	taken, err := takenNames(dir)
	if err != nil {
		return nil, err
	}
	report := pullReport{Written: []string{}, Unchanged: []string{}, Unknown: []string{}}
	for _, source := range pulled.Files {
		f, err := endpointfile.Parse(source.Path, []byte(source.Text))
		if err != nil {
			return nil, fmt.Errorf("reading what the server sent: %w", err)
		}
		var path string
		if known := there[f.Name]; known == nil {
			path = filepath.Join(dir, taken.free(source.Path))
		} else {
			delete(there, f.Name)
			if path = known.Path; known.Same(f) {
				report.Unchanged = append(report.Unchanged, path)
				continue
			}
		}
		if err := writeFile(path, source.Text); err != nil {
			return nil, err
		}
		report.Written = append(report.Written, path)
	}
	for _, f := range there {
		report.Unknown = append(report.Unknown, f.Path)
	}
	slices.Sort(report.Unknown)
	fmt.Fprintf(cmd.ErrOrStderr(), "wrote %s to %s; %d already matched the server\n", english.Plural(len(report.Written), "file", "files"), dir, len(report.Unchanged))
	return report, nil
}

// filesByName reads the files of a folder by endpoint name. A broken file is an error, because it would be overwritten.
func filesByName(dir string) (map[string]*endpointfile.File, error) {
	sources, err := endpointfile.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files, err := endpointfile.ParseAll(sources)
	if err != nil {
		return nil, fmt.Errorf("reading the files that are there: %w", err)
	}
	byName := make(map[string]*endpointfile.File, len(files))
	for _, f := range files {
		byName[f.Name] = f
	}
	return byName, nil
}

// fileNames are the names in a folder, in lower case: some file systems take a.yaml and A.yaml for the same file.
type fileNames map[string]bool

func takenNames(dir string) (fileNames, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the folder: %w", err)
	}
	taken := make(fileNames, len(entries))
	for _, entry := range entries {
		taken[strings.ToLower(entry.Name())] = true
	}
	return taken, nil
}

// free takes a name, or if it is taken, the first of name-2, name-3, … that is not. The extension stays.
func (taken fileNames) free(name string) string {
	ext := filepath.Ext(name)
	chosen := name
	for n := 2; taken[strings.ToLower(chosen)]; n++ {
		chosen = strings.TrimSuffix(name, ext) + "-" + strconv.Itoa(n) + ext
	}
	taken[strings.ToLower(chosen)] = true
	return chosen
}

// writeFile replaces a file atomically.
func writeFile(path, text string) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".endpoint-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, writeErr := temporary.WriteString(text)
	if err := errors.Join(writeErr, temporary.Chmod(0o644), temporary.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(temporary.Name()))
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(temporary.Name()))
	}
	return nil
}
