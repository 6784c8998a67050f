// Package adminapi defines the JSON that the operator's commands and the server's admin routes exchange. The commands print the answers unchanged, so
// scripts read the same fields.
package adminapi

import (
	"encoding/json"
	"time"
)

// NewProject requests a project.
type NewProject struct {
	Name      string `json:"name"`
	Timezone  string `json:"timezone"`   // an IANA name
	WeekStart int64  `json:"week_start"` // 0 Sunday, 1 Monday
	// TestAccountFilters and PathCleaningFilters are lists; absent for none.
	TestAccountFilters  json.RawMessage `json:"test_account_filters,omitempty"`
	PathCleaningFilters json.RawMessage `json:"path_cleaning_filters,omitempty"`
	Retention           int             `json:"retention_days"` // how many days events are kept; 0: forever
	// Shard is the name of the ClickHouse shard for its rows, empty for the main one; absent for the one with the fewest projects.
	Shard *string `json:"shard,omitempty"`
}

// ProjectChange changes a project. Absent fields stay as they are.
type ProjectChange struct {
	Name                *string         `json:"name,omitempty"`
	Timezone            *string         `json:"timezone,omitempty"`
	WeekStart           *int            `json:"week_start,omitempty"`
	TestAccountFilters  json.RawMessage `json:"test_account_filters,omitempty"`
	PathCleaningFilters json.RawMessage `json:"path_cleaning_filters,omitempty"`
	Retention           *int            `json:"retention_days,omitempty"`
}

// Project is a project.
type Project struct {
	ID                  int64           `json:"id"`
	APIToken            string          `json:"api_token"` // the newest capture token
	Name                string          `json:"name"`
	Timezone            string          `json:"timezone"`
	WeekStart           int             `json:"week_start"`
	TestAccountFilters  json.RawMessage `json:"test_account_filters"`
	PathCleaningFilters json.RawMessage `json:"path_cleaning_filters"`
	// Retention is how many days events are kept; 0: forever. EventsFrom is the time of the earliest events shown today; null for all.
	Retention  int        `json:"retention_days"`
	EventsFrom *time.Time `json:"events_from"`
	// Shard is the name of the ClickHouse shard that holds its rows; absent for the main one.
	Shard     string    `json:"shard,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// ProjectDeletion requests the deletion of a project.
type ProjectDeletion struct {
	Confirm string `json:"confirm"` // the project's name
}

// DeletedProject is a deleted project. Times that have not come are null.
type DeletedProject struct {
	ID   int64  `json:"id"`
	Name string `json:"name,omitempty"` // only right after the deletion
	// Records counts the records that the project had, by kind.
	Records map[string]int `json:"records"`
	// Events, Persons and Groups count what it had, only right after the deletion.
	Events      *int64     `json:"events,omitempty"`
	Persons     *int64     `json:"persons,omitempty"`
	Groups      *int64     `json:"groups,omitempty"`
	RequestedAt time.Time  `json:"requested_at"`
	RemovedAt   *time.Time `json:"removed_at"` // from then on no query finds its data
	ErasedAt    *time.Time `json:"erased_at"`  // from then on nothing of it is on the disk
}

// CaptureTokens are the tokens that a project's events are captured with, newest first. The newest is the one to use; the others stay valid until
// they are revoked.
type CaptureTokens struct {
	Project int64          `json:"project"`
	Tokens  []CaptureToken `json:"tokens"`
}

// CaptureStatus is how captured events progress to ClickHouse. Counts are since the start of the server, except for waiting events. What waits is the
// total of all shards, and the lag is the longest of any.
type CaptureStatus struct {
	Waiting  int64   `json:"waiting_events"` // on disk
	Bytes    int64   `json:"buffer_bytes"`   // of the log on disk
	MaxBytes int64   `json:"buffer_max_bytes"`
	Lag      float64 `json:"lag_seconds"`       // how long the oldest has been waiting
	Failing  string  `json:"failing,omitempty"` // why events can't be delivered now

	Accepted  int64            `json:"accepted_events"`
	Ignored   int64            `json:"ignored_events"`   // accepted, but of kinds that are not stored
	Refused   map[string]int64 `json:"refused_requests"` // by code of the answer
	Delivered int64            `json:"delivered_events"`
	SetAside  int64            `json:"set_aside_events"` // that ClickHouse does not accept
	Aside     string           `json:"aside,omitempty"`  // the folder of those of the main shard, if there are any

	// Shards are the logs of the shards other than the main one.
	Shards []CaptureShard `json:"shards,omitempty"`
}

// CaptureShard is what waits for one shard. The fields are those of [CaptureStatus].
type CaptureShard struct {
	Shard    string  `json:"shard"`
	Waiting  int64   `json:"waiting_events"`
	Bytes    int64   `json:"buffer_bytes"`
	MaxBytes int64   `json:"buffer_max_bytes"`
	Lag      float64 `json:"lag_seconds"`
	Failing  string  `json:"failing,omitempty"`
	Aside    string  `json:"aside,omitempty"`
}

// CaptureToken is a token that events are captured with.
type CaptureToken struct {
	Token     string    `json:"token"`
	CreatedAt time.Time `json:"created_at"`
}

// NewKey requests a key.
type NewKey struct {
	Project int64    `json:"project"`
	Scopes  []string `json:"scopes"`
	Kind    string   `json:"kind"` // personal or secret; personal if empty
	Label   string   `json:"label"`
	Expires string   `json:"expires"` // a time from now such as 90d; never if empty
	// Fix are the variables that every run with the key has; Endpoints are those that it may run, absent for all.
	Fix       map[string]json.RawMessage `json:"fix,omitempty"`
	Endpoints []string                   `json:"endpoints,omitempty"`
}

// Key is a key. Times that have not come are null.
type Key struct {
	ID           string     `json:"id"`
	Key          string     `json:"key,omitempty"` // the secret, only right after it was made
	Project      int64      `json:"project"`
	Kind         string     `json:"kind"`
	Label        string     `json:"label"`
	Mask         string     `json:"mask_value"`
	Scopes       []string   `json:"scopes"`
	CreatedAt    time.Time  `json:"created_at"`
	ExpiresAt    *time.Time `json:"expires_at"`
	LastUsedAt   *time.Time `json:"last_used_at"`
	LastRolledAt *time.Time `json:"last_rolled_at"`
	RevokedAt    *time.Time `json:"revoked_at"`
	Parent       string     `json:"parent,omitempty"` // the id of the key that it ends with

	Fixed     json.RawMessage `json:"fixed,omitempty"`
	Endpoints []string        `json:"endpoints,omitempty"`
}

// RotateTokens requests a new secret for the browser tokens of a project.
type RotateTokens struct {
	Project int64 `json:"project"`
	Revoke  bool  `json:"revoke"` // end all tokens signed before
}

// TokenSecret describes the secret that signs the browser tokens of a project, without the secret itself.
type TokenSecret struct {
	Project   int64     `json:"project"`
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
}

// Property says how a property is read.
type Property struct {
	Project int64  `json:"project"`
	Type    string `json:"type"`             // event, person or group
	Group   int    `json:"group_type_index"` // of a group's property
	Name    string `json:"name"`
	As      string `json:"as"` // String, Numeric, Boolean or DateTime
}

// CohortFields creates or renames a cohort.
type CohortFields struct {
	Project int64 `json:"project"`
	// ID is the id of a cohort whose members are already in ClickHouse; 0 for a new one.
	ID   int64  `json:"id,omitempty"`
	Name string `json:"name"`
}

// Cohort is a cohort.
type Cohort struct {
	ID      int64  `json:"id"`
	Project int64  `json:"project"`
	Name    string `json:"name"`
	Static  bool   `json:"is_static"`
	// Count is how many people are in it; nil if unknown.
	Count       *int64    `json:"count"`
	Calculating bool      `json:"is_calculating"`
	LastError   string    `json:"last_error_message,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
}

// Alert is an alert, with the outcome of its last check. Times that have not come are null.
type Alert struct {
	ID            string          `json:"id"`
	Project       int64           `json:"project"`
	Insight       int64           `json:"insight"`
	Name          string          `json:"name"`
	Enabled       bool            `json:"enabled"`
	State         string          `json:"state"`
	LastValue     *float64        `json:"last_value"`
	LastCheckedAt *time.Time      `json:"last_checked_at"`
	NextCheckAt   *time.Time      `json:"next_check_at"`
	NotifiedAt    *time.Time      `json:"last_notified_at"`
	WebhookURL    string          `json:"webhook_url,omitempty"` // empty for the webhook of the config
	Waiting       []AlertDelivery `json:"waiting_deliveries"`
}

// AlertDelivery is a message that is not delivered yet.
type AlertDelivery struct {
	ID        string    `json:"id"`
	CheckedAt time.Time `json:"checked_at"`
	Tries     int       `json:"tries"`
	NextTryAt time.Time `json:"next_try_at"`
	LastError string    `json:"last_error,omitempty"`
}

// Purge requests the final removal of deleted records.
type Purge struct {
	// OlderThan is the least time since the deletion, such as 30d; the server's default if empty.
	OlderThan string `json:"older_than"`
}

// Purged counts what was finally removed from a project.
type Purged struct {
	Project     int64 `json:"project"`
	Insights    int   `json:"insights"`
	Dashboards  int   `json:"dashboards"`
	Tiles       int   `json:"tiles"`
	Endpoints   int   `json:"endpoints"`
	Keys        int   `json:"keys"`
	Cohorts     int   `json:"cohorts"`
	Actions     int   `json:"actions"`
	Annotations int   `json:"annotations"`
	Deletions   int   `json:"deletions"` // records of deletions of people that are complete
}

// Import reports what an import did.
type Import struct {
	Files      []Import    `json:"files,omitempty"` // one for each, if there are several
	File       string      `json:"file,omitempty"`
	Format     string      `json:"format,omitempty"` // as detected from the file; for several files, from the first
	DryRun     bool        `json:"dry_run,omitempty"`
	Events     int         `json:"events"`                        // events that are in ClickHouse now, duplicates included
	Duplicates int         `json:"duplicates"`                    // of these, events that were there before
	First      *time.Time  `json:"first_timestamp,omitempty"`     // earliest time of the events; nil without events
	Last       *time.Time  `json:"last_timestamp,omitempty"`      // latest time of the events
	Persons    int         `json:"persons"`                       // records that describe a person
	People     int         `json:"new_people"`                    // people that were not there before; in a dry run, two million at most
	Merged     int         `json:"merged_people"`                 // people that were there and were merged into another person
	Groups     int         `json:"groups"`                        // records that describe a group
	Cohorts    int         `json:"cohorts"`                       // records that put people into a cohort
	Members    int         `json:"members"`                       // people that are new in a cohort
	TooOld     int         `json:"too_old_events,omitempty"`      // left out because the project does not keep events of their age
	LeftOut    int         `json:"left_out_properties"`           // of people and groups that already have the maximum
	LeftOutAt  int         `json:"left_out_at,omitempty"`         // the first line with a property left out
	Untyped    bool        `json:"types_limit_reached,omitempty"` // new properties beyond the limit have no type
	Unknown    []Unknown   `json:"unknown_fields"`                // ignored fields; the most frequent ones of each file
	MoreFields int         `json:"more_unknown_fields,omitempty"` // ignored fields that the list of their file leaves out
	Columns    []string    `json:"columns_as_properties,omitempty"`
	Skipped    int         `json:"skipped,omitempty"` // persons that the export marks as deleted
	Bad        int         `json:"bad"`               // records that were left out
	BadLines   []BadLine   `json:"bad_lines"`         // the first of them
	Learned    []Property  `json:"learned_properties"`
	GroupTypes []GroupType `json:"group_types"` // all group types of the project
	Seconds    float64     `json:"seconds"`
}

// Unknown is a field of lines that was ignored.
type Unknown struct {
	Name  string `json:"name"`
	Lines int    `json:"lines"`
	Meant string `json:"did_you_mean,omitempty"` // a known field
}

// ImportProgress is how far an import has progressed.
type ImportProgress struct {
	Running bool `json:"running"`
	Line    int  `json:"line"` // all lines up to this one are imported
	Events  int  `json:"events"`
}

// BadLine is a line that was not imported.
type BadLine struct {
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}

// GroupType is a kind of group that a project has.
type GroupType struct {
	Name  string `json:"group_type"`
	Index int    `json:"group_type_index"`
}

// SignIn requests a link that opens the console, signed in.
type SignIn struct {
	Project int64    `json:"project"`          // 0 for the only one
	Scopes  []string `json:"scopes,omitempty"` // of the session; all if empty
	Expires string   `json:"expires"`          // the length of the session, such as 12h, which is the default
	Site    string   `json:"site"`             // scheme and host of the console; those of the config if empty
}

// SignInLink is a link that opens the console, signed in. It works once.
type SignInLink struct {
	Link      string    `json:"link"`
	ExpiresAt time.Time `json:"expires_at"` // when the link stops working
	Project   int64     `json:"project"`
	Name      string    `json:"name"` // of the project
	Scopes    []string  `json:"scopes"`
}

// DeletePersons deletes people of a project, their events, or both.
type DeletePersons struct {
	Project    int64    `json:"project"`
	Persons    []string `json:"persons"` // ids of persons or distinct ids
	Events     bool     `json:"events"`
	KeepPerson bool     `json:"keep_person"`
}

// Deletion is the deletion of a person, of its events, or of both.
type Deletion struct {
	ID          string     `json:"id"`
	Project     int64      `json:"project"`
	Person      string     `json:"person"`
	Gone        bool       `json:"person_deleted"`
	Events      bool       `json:"events_deleted"`
	DistinctIDs int        `json:"distinct_ids"`
	EventCount  int64      `json:"event_count"`
	RequestedAt time.Time  `json:"requested_at"`
	HiddenAt    *time.Time `json:"hidden_at"` // from then on no answer has it
	EraseAt     *time.Time `json:"erase_at"`  // when it leaves the disk, or soon after; null once it has
	ErasedAt    *time.Time `json:"erased_at"` // from then on nothing of it is on the disk
}

// Deletions is a list of deletions, those not erased yet first.
type Deletions struct {
	Deletions []Deletion `json:"deletions"`
}

// Erased reports how many deletions an erasure completed.
type Erased struct {
	Erased int `json:"erased"`
}
