package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Endpoint is a published query (contract: api.md, section 5.3).
type Endpoint struct {
	ID                 string // UUID
	Project            int64
	Name               string
	Active             bool
	DerivedFromInsight string // short id of an insight; empty for none
	Tags               []string
	RateLimit          Rate // of the queries that its runs cause, whoever sends them; zero: the server's default
	CurrentVersion     int  // the version that runs; others may be newer: drafts, and versions that were rolled back
	CreatedAt          time.Time
	UpdatedAt          time.Time
	CreatedBy          string    // id of a key; empty when an operator made it
	LastExecutedAt     time.Time // zero: never; up to half an hour late: see [Snapshot.LastExecuted]
	Versions           []Version // 1, 2, 3…
}

// Version is one immutable query of an endpoint with the settings that go with it.
type Version struct {
	ID               string // UUID
	Number           int
	Query            json.RawMessage
	Description      string
	FreshnessSeconds int
	Active           bool
	Columns          []Column // nil: not known
	CreatedAt        time.Time
	UpdatedAt        time.Time
	CreatedBy        string
	LastExecutedAt   time.Time
	PublishedAt      time.Time // when it last became the current one; zero for a draft
	DeprecatedAt     time.Time // from when callers should leave it; zero: they need not
	SunsetAt         time.Time // when it is to end; zero: that is not said
	// The breakdowns of an insight that a run of a materialized version may leave out; nothing is materialized here.
	OptionalBreakdowns []string
}

// Draft tells that the version never was the current one.
func (v *Version) Draft() bool { return v.PublishedAt.IsZero() }

// Column is a column of a version's answer. Type is one of integer, float, string, datetime, date, boolean, array, json, unknown.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// ClickHouse is the type in ClickHouse's words, such as Array(Nullable(String)); empty when it is not known.
	ClickHouse string `json:"clickhouse_type,omitempty"`
}

// Version returns the version of a number, 0 standing for the current one; nil when there is none.
func (e *Endpoint) Version(number int) *Version {
	if number == 0 {
		number = e.CurrentVersion
	}
	if number < 1 || number > len(e.Versions) {
		return nil
	}
	return &e.Versions[number-1]
}

// Current returns the version that runs.
func (e *Endpoint) Current() *Version { return &e.Versions[e.CurrentVersion-1] }

// The freshness of an answer in seconds (design: section 7).
const (
	DefaultFreshness = 86400
	MinFreshness     = 1
	MaxFreshness     = 604800
)

const (
	maxShortID = 12
	maxTag     = 255

	endpointTaken = "An endpoint with this name already exists for this team."
)

var endpointName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,127}$`)

// ValidEndpointName tells the names that an endpoint may have: a letter, then letters, digits, - and _; at most 128.
func ValidEndpointName(name string) bool { return endpointName.MatchString(name) }

// NewEndpoint says what an endpoint is to be.
type NewEndpoint struct {
	Project            int64
	Name               string          // a letter, then letters, digits, - and _; at most 128
	Query              json.RawMessage // required; a JSON object that the caller has checked
	Description        string
	FreshnessSeconds   int  // 1 to 604800; 0 for the default
	Inactive           bool // made switched off
	DerivedFromInsight string
	Tags               []string
	RateLimit          Rate // zero for the server's default
	Columns            []Column
	OptionalBreakdowns []string
	DeprecatedAt       time.Time // zero: it is not deprecated
	SunsetAt           time.Time // zero: its end is not known; not before DeprecatedAt
	CreatedBy          string
}

// CreateEndpoint adds an endpoint with version 1. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateEndpoint(ctx context.Context, n NewEndpoint, now time.Time) (*Endpoint, error) {
	if n.FreshnessSeconds == 0 {
		n.FreshnessSeconds = DefaultFreshness
	}
	if err := n.validate(); err != nil {
		return nil, err
	}
	e := n.endpoint(moment(now))
	err := r.write(ctx, n.Project, func(tx Tx) error {
		if _, err := tx.Project(ctx, n.Project); err != nil {
			return fmt.Errorf("project %d: %w", n.Project, err)
		}
		return insertEndpoint(ctx, tx, e)
	}, func(d *draft) { d.putEndpoint(e) })
	if err != nil {
		return nil, fmt.Errorf("creating endpoint %q: %w", n.Name, err)
	}
	return &e, nil
}

// endpoint is what a valid NewEndpoint becomes.
func (n NewEndpoint) endpoint(at time.Time) Endpoint {
	return Endpoint{
		ID:                 newID(),
		Project:            n.Project,
		Name:               n.Name,
		Active:             !n.Inactive,
		DerivedFromInsight: n.DerivedFromInsight,
		Tags:               once(n.Tags),
		RateLimit:          n.RateLimit,
		CurrentVersion:     1,
		CreatedAt:          at,
		UpdatedAt:          at,
		CreatedBy:          n.CreatedBy,
		Versions: []Version{{
			ID:                 newID(),
			Number:             1,
			Query:              compact(n.Query),
			Description:        n.Description,
			FreshnessSeconds:   n.FreshnessSeconds,
			Active:             true,
			Columns:            slices.Clone(n.Columns),
			CreatedAt:          at,
			UpdatedAt:          at,
			CreatedBy:          n.CreatedBy,
			PublishedAt:        at,
			DeprecatedAt:       moment(n.DeprecatedAt),
			SunsetAt:           moment(n.SunsetAt),
			OptionalBreakdowns: slices.Clone(n.OptionalBreakdowns),
		}},
	}
}

func insertEndpoint(ctx context.Context, tx Tx, e Endpoint) error {
	return taken(tx.InsertEndpoint(ctx, e), ConflictEndpointName, "name", endpointTaken)
}

func (n NewEndpoint) validate() error {
	switch {
	case n.Name == "":
		return required("name")
	case !ValidEndpointName(n.Name):
		return invalid("name", "Invalid name '%s'. Must start with a letter, contain only alphanumeric characters, hyphens, or underscores, "+
			"and be between 1 and 128 characters long.", n.Name)
	case utf8.RuneCountInString(n.DerivedFromInsight) > maxShortID:
		return tooLong("derived_from_insight", maxShortID)
	}
	if err := validateQuery(n.Query); err != nil {
		return err
	}
	if err := validateTags(n.Tags); err != nil {
		return err
	}
	if err := validateEnd(n.DeprecatedAt, n.SunsetAt); err != nil {
		return err
	}
	return inRange("data_freshness_seconds", n.FreshnessSeconds, MinFreshness, MaxFreshness)
}

// DeleteEndpoint takes an endpoint away and frees its name. An unknown one is ErrNotFound.
func (r *Registry) DeleteEndpoint(ctx context.Context, project int64, name string, now time.Time) error {
	err := r.write(ctx, project, func(tx Tx) error {
		e, err := tx.Endpoint(ctx, project, name)
		if err != nil {
			return err
		}
		return tx.DeleteEndpoint(ctx, e.ID, moment(now))
	}, func(d *draft) { d.deleteEndpoint(project, name) })
	if err != nil {
		return fmt.Errorf("deleting endpoint %q: %w", name, err)
	}
	return nil
}

func validateQuery(query json.RawMessage) error {
	text := bytes.TrimSpace(query)
	switch {
	case len(text) == 0 || bytes.Equal(text, []byte("null")):
		return required("query")
	case text[0] != '{' || !json.Valid(text):
		return invalid("query", "Query must be a JSON object.")
	}
	return nil
}

func validateEnd(deprecated, sunset time.Time) error {
	if !sunset.IsZero() && sunset.Before(deprecated) {
		return invalid("sunset_at", "A version cannot end before it is deprecated.")
	}
	return nil
}

func validateTags(tags []string) error {
	for _, tag := range tags {
		if utf8.RuneCountInString(tag) > maxTag {
			return tooLong("tags", maxTag)
		}
	}
	return nil
}

// once returns the texts in the order given, each once; never nil.
func once(texts []string) []string {
	kept := make([]string, 0, len(texts))
	for _, text := range texts {
		if !slices.Contains(kept, text) {
			kept = append(kept, text)
		}
	}
	return kept
}

// compact copies valid JSON without its spaces.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		panic("BUG: compacting JSON that was found valid: " + err.Error())
	}
	return b.Bytes()
}

// newID returns a UUID that sorts by the time it was made.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
