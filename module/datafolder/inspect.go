// Package datafolder knows which versions of the program a data folder was written by. A file in the folder, version.json, has the form
// of each part of it. It is read before anything in the folder is opened: a folder of a newer version is refused, and what is about to
// change in one of an older version is logged first.
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

// FileName is the name of the file that has the versions.
const FileName = "version.json"

// The names of parts of a folder; other names are of newer versions. They are in version.json.
const (
	partTables  = "tables"
	partCapture = "capture"
	partIntents = "intents"
	partRecords = "records"
)

// part is a part of the folder that has a form of its own: the tables of the embedded engine, the log of captured events, the batches that
// are being written, the records of the registry.
type part struct {
	name string
	form int // that this program writes, and the newest that it reads
	// changes is what is done to the part in older forms, by the form that it is brought to. Most parts are read in their old forms.
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
	// Form is that of the file itself.
	Form int `json:"form"`
	// Program is the version of the program that wrote it last.
	Program string `json:"program"`
	// Parts are the forms of the folder's parts.
	Parts map[string]int `json:"parts"`
	// Engine is what the folder's tables were last opened with; nil when they never were.
	Engine *Engine `json:"engine,omitempty"`
}

// Engine is a version of ClickHouse, and the file of the library that has it.
type Engine struct {
	Version  string    `json:"version"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// fileForm is the newest form of version.json that is understood.
const fileForm = 1

// Report is how a data folder compares with this program.
type Report struct {
	Folder  string   `json:"folder"`
	State   State    `json:"state"`
	Program string   `json:"program,omitempty"` // that used the folder last, where that is known
	Engine  string   `json:"engine,omitempty"`  // version of ClickHouse that the folder was last used with, where that is known
	Changes []string `json:"changes"`           // what this program does to the folder when it starts with it

	file File
}

// State is how old a folder is.
type State string

// The states of a folder.
const (
	Empty   State = "empty"   // it holds nothing of ours
	Current State = "current" // this program writes what it holds
	Older   State = "older"   // an older version wrote it
)

// Inspect compares a folder, and the registry that a server has with it, with this program. It changes nothing. The error of a folder that
// a newer version wrote says what to do.
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

// check refuses what a newer version wrote.
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

// newer is the error for what a newer version wrote.
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

// isIn reports whether a folder holds files of the part.
func (p *part) isIn(folder string) bool {
	name, known := map[string]string{partTables: "engine", partCapture: "capture"}[p.name]
	if !known {
		return true
	}
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}

// holdsData reports whether a folder without version.json holds anything of ours.
func holdsData(folder string) (bool, error) {
	for _, name := range []string{"registry.db", "engine", "capture"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("looking at the data folder: %w", err)
		}
	}
	return false, nil
}
