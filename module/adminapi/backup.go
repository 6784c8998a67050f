package adminapi

import (
	"encoding/json"
	"time"
)

// NewBackup requests a backup.
type NewBackup struct {
	Folder string `json:"folder"`         // an absolute path on the server's machine
	Keep   int    `json:"keep,omitempty"` // how many backups to leave in the folder at most; 0 for all
	// ClickHouseTo is where a ClickHouse server writes the tables to, such as Disk('backups', 'name'). It is not for the embedded engine.
	ClickHouseTo string `json:"clickhouse_to,omitempty"`
}

// OldBackups asks for the backups in a folder, or with Name for one of them.
type OldBackups struct {
	Folder string `json:"folder"`
	Name   string `json:"name,omitempty"`   // of a backup; empty for the newest, or for all
	Verify bool   `json:"verify,omitempty"` // read all files
	Into   string `json:"into,omitempty"`   // the folder to unpack into, which must not exist
}

// Backup describes a backup.
type Backup struct {
	Name     string    `json:"name"`
	Time     time.Time `json:"time"` // the moment that it holds
	Bytes    int64     `json:"bytes"`
	NewBytes int64     `json:"new_bytes"` // that no earlier backup in the folder had
	Files    int       `json:"files"`
	Projects int       `json:"projects"`
	Events   int64     `json:"events"`            // in the tables of the backup
	Waiting  int64     `json:"waiting"`           // captured events that were not in ClickHouse yet
	Program  string    `json:"program,omitempty"` // the version that made it
	// Tables says where the tables are: in the backup, or at the destination to which a ClickHouse server wrote them; empty if the backup does not
	// have them.
	Tables string `json:"tables"`
	// Whole reports whether all files have the right size and, with Verify, the right checksum. Damage says what is wrong.
	Whole  bool   `json:"whole"`
	Damage string `json:"damage,omitempty"`
}

// Backups are the backups in a folder, oldest first.
type Backups struct {
	Backups []Backup `json:"backups"`
}

// Created is a backup that was made.
type Created struct {
	Backup

	Removed []string `json:"removed,omitempty"` // backups removed to make room
	Held    float64  `json:"held_seconds"`      // how long captured events and imports had to wait
	Seconds float64  `json:"seconds"`
}

// Restored is a backup that was restored.
type Restored struct {
	Backup

	Seconds float64 `json:"seconds"`
}

// BackupLine is a line of the answer: the progress, or in the last line the result or an error.
type BackupLine struct {
	Doing  string          `json:"doing,omitempty"` // in words
	Done   int64           `json:"done,omitempty"`  // bytes
	Total  int64           `json:"total,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}
