// Package datafolder tracks which versions of the program wrote a data folder. The file version.json in the folder holds the format version of each
// part of it. It is read before anything in the folder is opened: a folder of a newer version is refused, and what is about to change in a folder of
// an older version is logged first.
package datafolder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// FileName is the name of the file that holds the versions.
const FileName = "version.json"

// The names of a folder's parts in version.json. Other names belong to newer versions.
const (
	partTables  = "tables"
	partCapture = "capture"
	partIntents = "intents"
	partRecords = "records"
)

// part is a part of the folder with a format version of its own: the tables of the embedded engine, the log of captured events, the batches being
// written, the records of the registry.
type part struct {
	name string
	form int // the format version that this program writes, and the newest that it reads
	// changes describes how parts in older formats are upgraded, by the format version that they get. Most parts are read in their old formats.
	changes map[int]string
}

var parts = []part{
	{name: partTables, form: physical.Version, changes: map[int]string{
		2: "the engine's tables get the columns, indexes and settings that they lack, and tables that are missing are created; what they hold stays",
		3: "the engine's tables of the log of queries and of runs are created",
	}},
	{name: partCapture, form: journal.Form},
	{name: partIntents, form: ingest.IntentForm},
	{name: partRecords, form: registry.Form()},
}

// File is what version.json holds.
type File struct {
	// Form is the format version of the file itself.
	Form int `json:"form"`
	// Program is the version of the program that last wrote the file.
	Program string `json:"program"`
	// Parts are the format versions of the folder's parts.
	Parts map[string]int `json:"parts"`
	// Engine is what last opened the folder's tables; nil if nothing ever did.
	Engine *Engine `json:"engine,omitempty"`
}

// Engine is a version of ClickHouse, with the library file that contains it.
type Engine struct {
	Version  string    `json:"version"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// fileForm is the newest format version of version.json that is understood.
const fileForm = 1

// Report compares a data folder with this program.
type Report struct {
	Folder  string   `json:"folder"`
	State   State    `json:"state"`
	Program string   `json:"program,omitempty"` // version that last used the folder, if known
	Engine  string   `json:"engine,omitempty"`  // version of ClickHouse that last opened the folder, if known
	Changes []string `json:"changes"`           // what this program changes in the folder when it starts

	file File
}

// State says how old a folder is.
type State string

// The states of a folder.
const (
	Empty   State = "empty"   // it holds no data of this program
	Current State = "current" // its data has the format that this program writes
	Older   State = "older"   // an older version wrote it
)

// Inspect compares a folder, and the registry that a server uses with it, with this program. It changes nothing. The error for a folder that a newer
// version wrote says what to do.
func Inspect(folder, program string, reg registry.StoreState) (Report, error) {
	report := Report{Folder: folder, State: Current, Changes: []string{}}
	if reg.Version > reg.Current {
		return report, newer(reg.Name, "", program, "its tables have version", reg.Version, reg.Current)
	}
	file, found, err := read(folder)
	if err != nil {
		return report, err
	}
	if err := check(folder, program, file); err != nil {
		return report, err
	}
	report.file, report.Program = file, file.Program
	if file.Engine != nil {
		report.Engine = file.Engine.Version
	}
	if !found {
		switch used, err := holdsData(folder); {
		case err != nil:
			return report, err
		case used:
			report.State = Older
		default:
			report.State = Empty
		}
	}
	if reg.Upgrade != "" {
		report.State, report.Changes = Older, append(report.Changes, reg.Upgrade)
	}
	if report.State == Empty {
		return report, nil
	}
	for _, p := range parts {
		if file.Parts[p.name] < p.form {
			report.State = Older
		}
		for _, form := range slices.Sorted(maps.Keys(p.changes)) {
			if file.Parts[p.name] < form && p.isIn(folder) {
				report.Changes = append(report.Changes, p.changes[form])
			}
		}
	}
	return report, nil
}

// read reads version.json, and reports whether there is one.
func read(folder string) (file File, found bool, err error) {
	path := filepath.Join(folder, FileName)
	text, err := os.ReadFile(path) //nolint:gosec // the operator says where the folder is
	if errors.Is(err, os.ErrNotExist) {
		return File{Form: fileForm}, false, nil
	}
	if err != nil {
		return file, false, fmt.Errorf("reading the version of the data folder: %w", err)
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&file); err != nil || file.Form < 1 {
		return file, false, fmt.Errorf("the file %s is damaged: it should say which version wrote the data folder; "+
			"restore it from a backup, or remove it if no newer version of this program ever used the folder", path)
	}
	return file, true, nil
}

// check refuses a folder that a newer version wrote.
func check(folder, program string, file File) error {
	refuse := func(what string, form, known int) error {
		return newer("the data folder "+folder, file.Program, program, what, form, known)
	}
	if file.Form > fileForm {
		return refuse("its "+FileName+" has form", file.Form, fileForm)
	}
	for _, name := range slices.Sorted(maps.Keys(file.Parts)) {
		known := 0
		if at := slices.IndexFunc(parts, func(p part) bool { return p.name == name }); at >= 0 {
			known = parts[at].form
		}
		if file.Parts[name] > known {
			return refuse(fmt.Sprintf("its part %q has form", name), file.Parts[name], known)
		}
	}
	return nil
}

// newer returns the error for something that a newer version wrote.
func newer(what, wrote, program, has string, form, known int) error {
	by := "a newer version of this program"
	if wrote != "" {
		by += ", " + wrote
	}
	knows := fmt.Sprintf("knows up to %d", known)
	if known == 0 {
		knows = "does not know that part"
	}
	return fmt.Errorf("%s was written by %s: %s %d, and this version, %s, %s. Nothing was changed. "+
		"Start the newer version again, or restore a backup that was made before the upgrade", what, by, has, form, program, knows)
}

// isIn reports whether a folder has files of the part.
func (p *part) isIn(folder string) bool {
	name, known := map[string]string{partTables: "engine", partCapture: "capture"}[p.name]
	if !known {
		return true
	}
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}

// holdsData reports whether a folder without version.json holds data of this program.
func holdsData(folder string) (bool, error) {
	for _, name := range []string{"registry.db", "engine", "capture"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("inspecting the data folder: %w", err)
		}
	}
	return false, nil
}
