package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
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
	CurrentVersion     int
	CreatedAt          time.Time
	UpdatedAt          time.Time
	CreatedBy          string    // id of a key; empty when an operator made it
	LastExecutedAt     time.Time // zero: never; up to half an hour late
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
}

// Column is a column of a version's answer. Type is one of integer, float, string, datetime, date, boolean, array, json, unknown.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Version returns the version of a number, 0 standing for the newest; nil when there is none.
func (e *Endpoint) Version(number int) *Version {
	if number == 0 {
		number = e.CurrentVersion
	}
	if number < 1 || number > len(e.Versions) {
		return nil
	}
	return &e.Versions[number-1]
}

// Current returns the newest version.
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
	Columns            []Column
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
	at := moment(now)
	e := Endpoint{
		ID:                 newID(),
		Project:            n.Project,
		Name:               n.Name,
		Active:             !n.Inactive,
		DerivedFromInsight: n.DerivedFromInsight,
		Tags:               once(n.Tags),
		CurrentVersion:     1,
		CreatedAt:          at,
		UpdatedAt:          at,
		CreatedBy:          n.CreatedBy,
		Versions: []Version{{
			ID:               newID(),
			Number:           1,
			Query:            compact(n.Query),
			Description:      n.Description,
			FreshnessSeconds: n.FreshnessSeconds,
			Active:           true,
			Columns:          slices.Clone(n.Columns),
			CreatedAt:        at,
			UpdatedAt:        at,
			CreatedBy:        n.CreatedBy,
		}},
	}
	err := r.write(ctx, func(tx Tx) error {
		if _, err := tx.Project(ctx, n.Project); err != nil {
			return fmt.Errorf("project %d: %w", n.Project, err)
		}
		return taken(tx.InsertEndpoint(ctx, e), ConflictEndpointName, "name", endpointTaken)
	}, func(d *draft) { d.putEndpoint(e) })
	if err != nil {
		return nil, fmt.Errorf("creating endpoint %q: %w", n.Name, err)
	}
	return &e, nil
}

func (n NewEndpoint) validate() error {
	switch {
	case n.Name == "":
		return required("name")
	case !endpointName.MatchString(n.Name):
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
	return inRange("data_freshness_seconds", n.FreshnessSeconds, MinFreshness, MaxFreshness)
}

// EndpointUpdate says what of an endpoint is to change; nil fields stay. Description, freshness and columns belong to a
// version: the one named, else the newest, which is the new one when the query differs.
type EndpointUpdate struct {
	Version          int             // the version to change; 0: the endpoint and its newest version
	Query            json.RawMessage // makes a new version when it differs from the newest one's
	SameQuery        func(current json.RawMessage) bool
	Description      *string
	FreshnessSeconds *int
	Active           *bool // of the version when one is named, else of the endpoint
	Tags             *[]string
	Columns          []Column
	By               string // id of the key that asks; becomes CreatedBy of a new version
}

// UpdateEndpoint changes an endpoint (contract: api.md, sections 5.2 and 5.3). SameQuery decides whether the query in force
// means the same as the one given; without it they are compared as JSON values. Mistakes are *FieldError; an unknown
// endpoint is ErrNotFound.
func (r *Registry) UpdateEndpoint(ctx context.Context, project int64, name string, u EndpointUpdate, now time.Time) (*Endpoint, error) {
	if err := u.validate(); err != nil {
		return nil, err
	}
	var e Endpoint
	err := r.write(ctx, func(tx Tx) (err error) {
		if e, err = tx.Endpoint(ctx, project, name); err != nil {
			return err
		}
		if u.Version != 0 && e.Version(u.Version) == nil {
			return invalid("version", "Version %d not found", u.Version)
		}
		return u.apply(ctx, tx, &e, moment(now))
	}, func(d *draft) { d.putEndpoint(e) })
	if err != nil {
		return nil, fmt.Errorf("updating endpoint %q: %w", name, err)
	}
	return &e, nil
}

func (u EndpointUpdate) validate() error {
	if u.Query != nil && u.Version != 0 {
		return invalid("query", "Cannot change query when targeting a specific version. Query changes create a new version.")
	}
	if u.Version < 0 {
		return invalid("version", "Version %d not found", u.Version)
	}
	if u.Query != nil {
		if err := validateQuery(u.Query); err != nil {
			return err
		}
	}
	if u.Tags != nil {
		if err := validateTags(*u.Tags); err != nil {
			return err
		}
	}
	if u.FreshnessSeconds != nil {
		return inRange("data_freshness_seconds", *u.FreshnessSeconds, MinFreshness, MaxFreshness)
	}
	return nil
}

// apply changes e as stored, and persists it.
func (u EndpointUpdate) apply(ctx context.Context, tx Tx, e *Endpoint, at time.Time) error {
	v := *e.Version(u.Version)
	renewed := u.Query != nil && !u.sameQuery(v.Query)
	if renewed {
		v = Version{
			ID:               newID(),
			Number:           v.Number + 1,
			Query:            compact(u.Query),
			Description:      v.Description,
			FreshnessSeconds: v.FreshnessSeconds,
			Active:           true,
			CreatedAt:        at,
			CreatedBy:        u.By,
		}
		e.CurrentVersion = v.Number
	}
	changed := renewed || u.Description != nil || u.FreshnessSeconds != nil || u.Columns != nil || u.Active != nil && u.Version != 0
	if u.Description != nil {
		v.Description = *u.Description
	}
	if u.FreshnessSeconds != nil {
		v.FreshnessSeconds = *u.FreshnessSeconds
	}
	if u.Columns != nil {
		v.Columns = slices.Clone(u.Columns)
	}
	if u.Active != nil {
		if u.Version != 0 {
			v.Active = *u.Active
		} else {
			e.Active = *u.Active
		}
	}
	if u.Tags != nil {
		e.Tags = once(*u.Tags)
	}
	e.UpdatedAt = at

	var err error
	if changed {
		v.UpdatedAt = at
		if renewed {
			e.Versions = append(slices.Clip(e.Versions), v)
			err = tx.InsertVersion(ctx, e.ID, v)
		} else {
			e.Versions[v.Number-1] = v
			err = tx.UpdateVersion(ctx, e.ID, v)
		}
	}
	if err != nil {
		return err
	}
	return tx.UpdateEndpoint(ctx, *e)
}

func (u EndpointUpdate) sameQuery(current json.RawMessage) bool {
	if u.SameQuery != nil {
		return u.SameQuery(current)
	}
	a, errA := DecodeJSON(current)
	b, errB := DecodeJSON(u.Query)
	return errA == nil && errB == nil && reflect.DeepEqual(a, b)
}

// DeleteEndpoint takes an endpoint away and frees its name. An unknown one is ErrNotFound.
func (r *Registry) DeleteEndpoint(ctx context.Context, project int64, name string, now time.Time) error {
	err := r.write(ctx, func(tx Tx) error {
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
