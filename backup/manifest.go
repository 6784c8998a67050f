// Package backup keeps backups in a folder: their files, each content once, and a manifest for each backup. It does not know what the files contain.
//
// The folder has the manifests, <name>.json, and in objects/ the contents of files by their SHA-256. A backup exists once its manifest does, which is
// written last. A backup that follows another one takes only the space of what is new, and stays complete when the other one is removed.
package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// Format is the version of manifests that this program writes. It reads this version and all before it.
const Format = 1

// Manifest describes a backup.
type Manifest struct {
	Format  int       `json:"format"`
	Name    string    `json:"name"`
	Time    time.Time `json:"time"`    // the time whose data the backup has
	Program string    `json:"program"` // the version of the program that made it
	Engine  string    `json:"engine"`  // the version of ClickHouse
	// Projects are the projects in the registry.
	Projects []Project `json:"projects"`
	// Tables are the tables whose parts are in the backup.
	Tables []Table `json:"tables"`
	// Server says that the tables were on a ClickHouse server, so the backup does not have them. Destination is where the server was asked to write
	// them, such as Disk('backups', 'name'); empty if it was not asked.
	Server      bool   `json:"server,omitempty"`
	Destination string `json:"destination,omitempty"`
	Waiting     int64  `json:"waiting"`   // captured events that were not in ClickHouse yet
	NewBytes    int64  `json:"new_bytes"` // bytes that no earlier backup in the folder had
	Files       []File `json:"files"`
}

// Project is a project with the number of its events.
type Project struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Events int64  `json:"events"`
}

// Table is a table whose parts are in the backup.
type Table struct {
	Name    string          `json:"name"`
	Create  string          `json:"create"`
	Columns []Column        `json:"columns"` // none for the table of a materialized endpoint
	Rows    map[int64]int64 `json:"rows"`    // stored rows by project
}

// Column is a column of a table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// File is a file of a backup.
type File struct {
	Path   string `json:"path"` // slashes separate its parts
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // 64 digits in lower case
}

// Bytes returns the size of all files.
func (m *Manifest) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

// Below returns the files below a folder, such as "registry".
func (m *Manifest) Below(folder string) (files []File) {
	for _, f := range m.Files {
		if strings.HasPrefix(f.Path, folder+"/") {
			files = append(files, f)
		}
	}
	return files
}

// envelope is the format of a manifest's file.
type envelope struct {
	Manifest json.RawMessage `json:"manifest"`
	SHA256   string          `json:"sha256"` // of the bytes of Manifest
}

// NewerError is returned for a backup that a newer version of the program wrote.
type NewerError struct{ Format int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("it has form %d, and this program knows forms up to %d: a newer version of the program wrote it", e.Format, Format)
}

// maxManifest is the maximum size of a manifest in bytes: about 10 million files.
const maxManifest = 2 << 30

// ParseManifest parses the text of a manifest's file. It refuses a file that is not as it was written, or that names files outside the backup.
func ParseManifest(text []byte) (*Manifest, error) {
	var e envelope
	if err := decodeStrict(text, &e); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	if sum := sha256.Sum256(e.Manifest); hex.EncodeToString(sum[:]) != e.SHA256 {
		return nil, errors.New("the manifest is damaged: its checksum is another one")
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(e.Manifest, &version); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	if version.Format > Format {
		return nil, &NewerError{version.Format}
	}
	m := new(Manifest)
	if err := decodeStrict(e.Manifest, m); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("the manifest is wrong: %w", err)
	}
	return m, nil
}

func decodeStrict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	return nil
}

func (m *Manifest) check() error {
	if m.Format < 1 {
		return fmt.Errorf("its form is %d", m.Format)
	}
	if err := CheckName(m.Name); err != nil {
		return err
	}
	seen := make(map[string]bool, len(m.Files))
	for _, f := range m.Files {
		if err := f.check(); err != nil {
			return err
		}
		if seen[f.Path] {
			return fmt.Errorf("the file %q is there twice", f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}

func (f *File) check() error {
	if !fs.ValidPath(f.Path) || f.Path == "." || strings.ContainsAny(f.Path, "\\\x00:") {
		return fmt.Errorf("%q is not the path of a file in a backup", f.Path)
	}
	if f.Size < 0 {
		return fmt.Errorf("the file %q has the size %d", f.Path, f.Size)
	}
	if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != sha256.Size || strings.ToLower(f.SHA256) != f.SHA256 {
		return fmt.Errorf("the file %q has no valid checksum", f.Path)
	}
	return nil
}

// CheckName returns an error if name is not the name of a backup.
func CheckName(name string) error {
	digits := strings.Trim(name, "0123456789TZ-")
	if name == "" || len(name) > 64 || digits != "" {
		return fmt.Errorf("%q is not the name of a backup", name)
	}
	return nil
}

// encode returns the text of the manifest's file.
func (m *Manifest) encode() ([]byte, error) {
	inner, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(inner)
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"manifest":%s,"sha256":%q}`+"\n", inner, hex.EncodeToString(sum[:]))
	return b.Bytes(), nil
}
