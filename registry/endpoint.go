package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Endpoint is a published query (contract: api.md, section 5.3).
type Endpoint struct {
	ID                 string    `json:"id"` // UUID
	Project            int64     `json:"-"`
	Name               string    `json:"name"`
	Active             bool      `json:"active"`
	DerivedFromInsight string    `json:"derived_from_insight"` // short id of an insight; empty for none
	Tags               []string  `json:"tags"`
	RateLimit          Rate      `json:"rate_limit,omitzero"` // of the queries that its runs cause, whoever starts them; zero: the server's default
	CurrentVersion     int       `json:"current_version"`     // the version that runs; drafts and versions that were rolled back may be newer
	CreatedAt          time.Time `json:"created_at"`
	UpdatedAt          time.Time `json:"updated_at"`
	CreatedBy          string    `json:"created_by"`                // id of a key; empty if an operator created it
	LastExecutedAt     time.Time `json:"last_executed_at,omitzero"` // written by earlier versions: see [Snapshot.LastExecuted]
	Versions           []Version `json:"-"`                         // 1, 2, 3…
}

// Version is one immutable query of an endpoint, with its settings.
type Version struct {
	ID               string          `json:"id"` // UUID
	Number           int             `json:"number"`
	Query            json.RawMessage `json:"query"`
	Description      string          `json:"description"`
	FreshnessSeconds int             `json:"freshness_seconds"`
	Active           bool            `json:"active"`
	Columns          []Column        `json:"columns"` // nil if they are not known
	CreatedAt        time.Time       `json:"created_at"`
	UpdatedAt        time.Time       `json:"updated_at"`
	CreatedBy        string          `json:"created_by"`
	LastExecutedAt   time.Time       `json:"last_executed_at,omitzero"` // written by earlier versions
	PublishedAt      time.Time       `json:"published_at,omitzero"`     // when it last became the current one; zero for a draft
	DeprecatedAt     time.Time       `json:"deprecated_at,omitzero"`    // when callers should stop using it; zero: they need not
	SunsetAt         time.Time       `json:"sunset_at,omitzero"`        // when it will end; zero if that is not known
	// The breakdowns of an insight that runs of a materialized version may leave out.
	OptionalBreakdowns []string `json:"optional_breakdowns"`
	Table              *Table   `json:"table,omitempty"` // nil: the version is not materialized
}

// endpointRecord is the record of an endpoint. Its versions have records of their own, so that a change costs the same however many
// there are.
type endpointRecord struct {
	*Endpoint

	DeletedAt time.Time `json:"deleted_at,omitzero"` // zero: it is not deleted
}

func readEndpoint(rec *Record) (entity, error) {
	e := &endpointRecord{Endpoint: &Endpoint{ID: rec.ID, Project: rec.Project}}
	return e, decode(rec, e)
}

func (e *endpointRecord) name() recordName { return recordName{e.Project, KindEndpoint, e.ID} }

func (e *endpointRecord) unique() []string {
	keys := []string{"id " + e.ID}
	if e.DeletedAt.IsZero() {
		keys = append(keys, within(e.Project, e.Name))
	}
	return keys
}

func (e *Endpoint) size() int { return len(e.Name) + listBytes(e.Tags) }

func (e *endpointRecord) checkSize() error {
	return checkSize("tags", "This endpoint", listBytes(e.Tags), MaxSmallRecord)
}

// put shows the endpoint with the versions that the draft has of it.
func (e *endpointRecord) put(d *draft, p *projectState) (Stored, error) {
	next := &endpointEntry{Endpoint: *e.Endpoint, deleted: e.DeletedAt}
	next.Versions = nil
	if before := d.ownVersions(p, e.Project, e.ID); before != nil {
		next.Versions, next.executed = before.Versions, before.executed
	}
	d.own[e.Project].versions[e.ID] = next
	d.forgetName(p, e.ID)
	return d.putEndpoint(p, next), nil
}

func (e *endpointRecord) remove(d *draft, p *projectState) Stored {
	delete(d.own[e.Project].versions, e.ID)
	d.forgetName(p, e.ID)
	was := p.endpoints.remove(e.ID)
	p.endpointsChanged()
	return was
}

func (e *endpointEntry) key() string  { return e.ID }
func (e *endpointEntry) code() string { return "" } // the snapshot has them by name
func (e *endpointEntry) listed() bool { return e.deleted.IsZero() }

// compare puts new endpoints first.
func (e *endpointEntry) compare(other *endpointEntry) int {
	return cmp.Or(other.CreatedAt.Compare(e.CreatedAt), cmp.Compare(other.ID, e.ID))
}

// putEndpoint shows an endpoint in place of the one with the same id, and returns what was there.
func (d *draft) putEndpoint(p *projectState, e *endpointEntry) Stored {
	was := p.endpoints.put(e)
	p.endpointsChanged()
	if e.listed() {
		d.next.endpoints = d.next.endpoints.Set(endpointKey{e.Project, e.Name}, e)
	}
	return was
}

// forgetName frees the name of an endpoint, unless another one has it.
func (d *draft) forgetName(p *projectState, id string) {
	if before := p.endpoints.get(id); before != nil && d.next.endpoint(before.Project, before.Name) == before {
		d.next.endpoints = d.next.endpoints.Delete(endpointKey{before.Project, before.Name})
	}
}

// endpointsChanged invalidates the list of endpoints, which is made again on its next use.
func (p *projectState) endpointsChanged() {
	list := p.endpoints.list
	p.endpointList = sync.OnceValue(func() []*Endpoint {
		all := make([]*Endpoint, 0, list.Len())
		for _, e := range valuesOf(list, nil) {
			all = append(all, &e.Endpoint)
		}
		return all
	})
}

// ownVersions returns the entry of an endpoint whose versions are the draft's own; nil if there is no such endpoint.
func (d *draft) ownVersions(p *projectState, project int64, id string) *endpointEntry {
	own := d.own[project].versions
	if entry := own[id]; entry != nil {
		return entry
	}
	before := p.endpoints.get(id)
	if before == nil {
		return nil
	}
	next := *before
	next.Versions, next.executed = slices.Clone(before.Versions), slices.Clone(before.executed)
	own[id] = &next
	d.putEndpoint(p, &next)
	return &next
}

// versionRecord is the record of a version.
type versionRecord struct {
	Version

	project  int64
	endpoint string
}

func readVersion(rec *Record) (entity, error) {
	v := &versionRecord{project: rec.Project}
	endpoint, number, _ := strings.Cut(rec.ID, "/")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > MaxVersions {
		return nil, errors.New("the id does not name a version of an endpoint")
	}
	v.endpoint, v.Number = endpoint, n
	return v, decode(rec, v)
}

func (v *versionRecord) name() recordName {
	return recordName{v.project, KindVersion, v.endpoint + "/" + strconv.Itoa(v.Number)}
}

func (v *versionRecord) unique() []string { return []string{"id " + v.ID} }

func (v *versionRecord) size() int {
	size := len(v.Query) + len(v.Description) + listBytes(v.OptionalBreakdowns) + v.Table.size()
	for _, c := range v.Columns {
		size += len(c.Name) + len(c.Type) + len(c.ClickHouse)
	}
	return size
}

func (v *versionRecord) checkSize() error {
	if v.Number > MaxVersions {
		return limitReached("This endpoint has %d versions, which is the most it can have. Publish the query under another name, or delete the endpoint first.", MaxVersions)
	}
	return checkSize("query", "This version of the endpoint", v.size(), MaxRecord)
}

func (v *versionRecord) put(d *draft, p *projectState) (was Stored, err error) {
	entry := d.ownVersions(p, v.project, v.endpoint)
	if entry == nil {
		return Stored{}, nil // purged
	}
	for len(entry.Versions) < v.Number {
		entry.Versions, entry.executed = append(entry.Versions, Version{}), append(entry.executed, new(atomic.Int64))
	}
	before := &entry.Versions[v.Number-1]
	if before.Number != 0 {
		was = Stored{1, int64((&versionRecord{Version: *before}).size())}
	}
	*before = v.Version
	raise(entry.executed[v.Number-1], v.LastExecutedAt)
	return was, nil
}

// remove subtracts the version from the usage; the version itself goes with its endpoint.
func (v *versionRecord) remove(_ *draft, p *projectState) Stored {
	entry := p.endpoints.get(v.endpoint)
	if entry == nil || v.Number > len(entry.Versions) {
		return Stored{}
	}
	return Stored{1, int64((&versionRecord{Version: entry.Versions[v.Number-1]}).size())}
}

// endpoint returns the endpoint with a name, to be changed; ErrNotFound if there is none.
func (t *tx) endpoint(name string) (Endpoint, error) {
	if before := t.next.Endpoint(t.project, name); before != nil {
		e := *before
		e.Versions = slices.Clone(e.Versions)
		return e, nil
	}
	return Endpoint{}, ErrNotFound
}

// putEndpoint puts an endpoint, and those of its versions whose numbers are given.
func (t *tx) putEndpoint(e Endpoint, versions ...int) error {
	if err := t.put(&endpointRecord{Endpoint: &e}); err != nil {
		return err
	}
	for _, number := range versions {
		if err := t.put(&versionRecord{Version: e.Versions[number-1], project: e.Project, endpoint: e.ID}); err != nil {
			return err
		}
	}
	return nil
}

// addEndpoint adds an endpoint whose name is free.
func (t *tx) addEndpoint(e Endpoint) error {
	if _, err := t.state(); err != nil {
		return err
	}
	if t.next.Endpoint(t.project, e.Name) != nil {
		return &FieldError{Field: "name", Code: CodeUnique, Message: endpointTaken}
	}
	return t.putEndpoint(e, 1)
}

// deleteEndpoint deletes an endpoint and frees its name.
func (t *tx) deleteEndpoint(name string, at time.Time) error {
	e, err := t.endpoint(name)
	if err != nil {
		return err
	}
	for _, number := range e.withoutTables() {
		if err := t.put(&versionRecord{Version: e.Versions[number-1], project: e.Project, endpoint: e.ID}); err != nil {
			return err
		}
	}
	return t.put(&endpointRecord{&e, at})
}

// Draft reports whether the version was never the current one.
func (v *Version) Draft() bool { return v.PublishedAt.IsZero() }

// Column is a column of a version's results. Type is one of integer, float, string, datetime, date, boolean, array, json, unknown.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// ClickHouse is the type in ClickHouse's words, such as Array(Nullable(String)); empty if it is not known.
	ClickHouse string `json:"clickhouse_type,omitempty"`
}

// Version returns the version with a number, 0 for the current one; nil if there is none.
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

// ValidEndpointName reports whether an endpoint may have a name: a letter, then letters, digits, - and _; at most 128 in all.
func ValidEndpointName(name string) bool { return endpointName.MatchString(name) }

// NewEndpoint describes a new endpoint.
type NewEndpoint struct {
	Project            int64
	Name               string          // a letter, then letters, digits, - and _; at most 128
	Query              json.RawMessage // required; a JSON object that the caller has checked
	Description        string
	FreshnessSeconds   int  // 1 to 604800; 0 for the default
	Inactive           bool // created switched off
	DerivedFromInsight string
	Tags               []string
	RateLimit          Rate // zero for the server's default
	Columns            []Column
	OptionalBreakdowns []string
	DeprecatedAt       time.Time // zero: it is not deprecated
	SunsetAt           time.Time // zero: its end is not known; not before DeprecatedAt
	Table              TableUpdate
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
	err := r.write(ctx, n.Project, func(t *tx) error { return t.addEndpoint(e) })
	if err != nil {
		return nil, fmt.Errorf("creating endpoint %q: %w", n.Name, err)
	}
	return &e, nil
}

// endpoint returns the endpoint that a valid NewEndpoint describes.
func (n NewEndpoint) endpoint(at time.Time) Endpoint {
	return Endpoint{
		ID:                 newID(),
		Project:            n.Project,
		Name:               n.Name,
		Active:             !n.Inactive,
		DerivedFromInsight: n.DerivedFromInsight,
		Tags:               PlainTags(n.Tags),
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
			Table:              n.Table.of(nil, true, at),
		}},
	}
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
	if err := validateTags(n.Tags, MaxSmallRecord); err != nil {
		return err
	}
	if err := validateEnd(n.DeprecatedAt, n.SunsetAt); err != nil {
		return err
	}
	return inRange("data_freshness_seconds", n.FreshnessSeconds, MinFreshness, MaxFreshness)
}

// DeleteEndpoint deletes an endpoint and frees its name. An unknown endpoint is ErrNotFound.
func (r *Registry) DeleteEndpoint(ctx context.Context, project int64, name string, now time.Time) error {
	err := r.write(ctx, project, func(t *tx) error { return t.deleteEndpoint(name, moment(now)) })
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

// validateTags refuses tags before they are compared with each other; most is the limit of the record that they are part of.
func validateTags(tags []string, most int) error {
	if err := checkSize("tags", "The list of tags", listBytes(tags), most); err != nil {
		return err
	}
	for _, tag := range tags {
		if utf8.RuneCountInString(tag) > maxTag {
			return tooLong("tags", maxTag)
		}
	}
	return nil
}

// PlainTag returns a tag as it is stored: in lower case without blanks around it, as in PostHog. Those that older releases stored may differ.
func PlainTag(tag string) string { return strings.ToLower(strings.TrimSpace(tag)) }

// PlainTags returns tags as they are stored, each once, and without empty ones.
func PlainTags(given []string) []string {
	tags := make([]string, 0, len(given))
	for _, tag := range given {
		if tag = PlainTag(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return once(tags)
}

// HasTag returns a function that reports whether the tags of a record contain one of the wanted ones, both as they would be stored.
func HasTag(wanted []string) func(tags []string) bool {
	plain := map[string]bool{}
	for _, tag := range PlainTags(wanted) {
		plain[tag] = true
	}
	return func(tags []string) bool {
		return slices.ContainsFunc(tags, func(tag string) bool { return plain[PlainTag(tag)] })
	}
}

// once returns the texts in the order given, each once. It never returns nil.
func once(texts []string) []string {
	kept, known := make([]string, 0, len(texts)), make(map[string]bool, len(texts))
	for _, text := range texts {
		if !known[text] {
			kept, known[text] = append(kept, text), true
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
