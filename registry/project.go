package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	_ "time/tzdata" // a machine without zone files must not refuse the zones that another one stored
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Project is a tenant: events, keys and endpoints belong to exactly one.
type Project struct {
	ID        int64     `json:"id"` // from 1
	Name      string    `json:"name"`
	Timezone  string    `json:"timezone"`   // IANA name
	WeekStart int       `json:"week_start"` // 0 Sunday, 1 Monday
	CreatedAt time.Time `json:"created_at"`
	// UpdatedAt is the time of the last change; zero for never.
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// TestAccountFilters is a JSON list of property filters. An event for which all of them hold is not a test account's (contract: api.md, section 2.1); empty
	// for none.
	TestAccountFilters string `json:"test_account_filters,omitempty"`
	// PathCleaningFilters is a JSON list of rules that clean the names of steps (contract: paths.md); empty for none.
	PathCleaningFilters string `json:"path_cleaning_filters,omitempty"`
	// DisplayNames is a JSON list of the properties that name a person, best first; empty for the usual ones.
	DisplayNames string `json:"person_display_name_properties,omitempty"`
	// AnonymizeIPs says that events are stored without the property $ip.
	AnonymizeIPs bool `json:"anonymize_ips,omitempty"`
	// Retention is how many days events are kept; 0 forever. See [ProjectSchema.EventsFrom].
	Retention int `json:"retention_days,omitempty"`
	// Epoch grows with each deletion of people or events, and when the retention changes: what ClickHouse had before may come in again.
	Epoch int64 `json:"epoch,omitempty"`
	// Shard is the name of the shard of ClickHouse that has its rows; empty for the one that the DSN names. It never changes.
	Shard string `json:"shard,omitempty"`
	// ValuesKnown says that all values of its properties are noted: since its first event, or since the last probe began. See [Registry.Widen].
	ValuesKnown bool `json:"values_known,omitempty"`
	// ValuesProbe is the state of the search for earlier values.
	ValuesProbe ValuesProbe `json:"values_probe,omitzero"`
	// Others is a JSON object of settings that clients keep here and that have no effect; empty for none.
	Others string `json:"others,omitempty"`
}

// projectHistory is the history of project records. The first two steps change nothing. They keep out versions that note no values, or do not know about
// earlier values: these do not open such a registry, and so write nothing that makes [Project.ValuesKnown] wrong. The third step keeps out versions that know
// no shards, and would look for rows elsewhere. The fourth step gives an epoch to projects of versions that used the times of deletions instead; it differs
// from all such times.
var projectHistory = []upgrade{unchanged, unchanged, unchanged, func(fields map[string]json.RawMessage) error {
	fields["epoch"] = json.RawMessage("1")
	return nil
}}

func unchanged(map[string]json.RawMessage) error { return nil }

// ValuesProbe is a search for the kinds of values that the properties of a project had before they were noted.
type ValuesProbe struct {
	Number int64 `json:"number"` // number of the last probe, from 1; 0 for none
	// Open says that there may be earlier values whose kinds are not known. Then a property of which nothing is noted may have had some, too.
	Open bool `json:"open,omitempty"`
	// Ended is when a probe last ended, whatever it found; zero for never.
	Ended time.Time `json:"ended,omitzero"`
}

func readProject(rec *Record) (entity, error) {
	p := &Project{ID: rec.Project}
	return p, decode(rec, p)
}

func (p *Project) name() recordName { return recordName{project: p.ID, kind: KindProject} }
func (p *Project) unique() []string { return nil }
func (p *Project) size() int        { return 0 } // the settings do not count towards the limits of a project

func (p *Project) checkSize() error {
	return checkSize("", "The settings of the project",
		len(p.TestAccountFilters)+len(p.PathCleaningFilters)+len(p.DisplayNames)+len(p.Others), MaxRecord)
}

func (p *Project) put(_ *draft, in *projectState) (Stored, error) {
	location, err := loadZone(p.Timezone)
	if err != nil {
		return Stored{}, err
	}
	if in.settings.Project == *p {
		return Stored{1, 0}, nil
	}
	next := in.settings
	next.Project, next.Location = *p, location
	if next.TestAccounts, err = testAccounts(p); err != nil {
		return Stored{}, fmt.Errorf("reading the filters against test accounts: %w", err)
	}
	if next.PathCleaning, err = pathCleaning(p); err != nil {
		return Stored{}, fmt.Errorf("reading the rules of path cleaning: %w", err)
	}
	if next.DisplayNames, err = displayNames(p); err != nil {
		return Stored{}, fmt.Errorf("reading the properties that name people: %w", err)
	}
	in.settings = next
	in.schemaChanged()
	return Stored{1, 0}, nil
}

func (p *Project) remove(d *draft, _ *projectState) Stored {
	d.leaveOut(p.ID)
	return Stored{}
}

// NewProject describes a new project.
type NewProject struct {
	Name      string // required, at most 200 characters; need not be unique
	Timezone  string // IANA name; empty for UTC
	WeekStart int    // 0 Sunday, 1 Monday
	// TestAccountFilters and PathCleaningFilters are JSON lists as in Project; empty for none.
	TestAccountFilters  string
	PathCleaningFilters string
	Retention           int    // as in Project
	Shard               string // as in Project
}

// ProjectChange is a change of a project; nil fields stay.
type ProjectChange struct {
	Name                *string
	Timezone            *string
	WeekStart           *int
	TestAccountFilters  *string
	PathCleaningFilters *string
	Retention           *int    // as in Project
	DisplayNames        *string // a JSON list of texts, or empty for the usual ones
	AnonymizeIPs        *bool
	Others              map[string]json.RawMessage // those that change; a nil value removes one
	// At is when the change is made; zero keeps UpdatedAt as it is.
	At time.Time
}

const maxProjectName = 200

// CreateProject adds a project. Mistakes are *FieldError.
func (r *Registry) CreateProject(ctx context.Context, n NewProject, now time.Time) (*Project, error) {
	p := Project{
		Name: strings.TrimSpace(n.Name), Timezone: n.Timezone, WeekStart: n.WeekStart, CreatedAt: moment(now),
		TestAccountFilters: n.TestAccountFilters, PathCleaningFilters: n.PathCleaningFilters, Retention: n.Retention, Shard: n.Shard,
	}
	if p.Timezone == "" {
		p.Timezone = "UTC"
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	err := r.write(ctx, 0, func(t *tx) error {
		p.ID = t.number(KindProject)
		created := p
		if err := t.put(&created); err != nil {
			return err
		}
		return t.put(&captureToken{p.ID, newCaptureToken(now, nil)})
	})
	if err != nil {
		return nil, fmt.Errorf("creating a project: %w", err)
	}
	return &p, nil
}

// maxReserved is the greatest number that ReserveProjects reserves. Greater ones are not those of projects, and clients can't represent all of them.
const maxReserved = 1 << 40

// ReserveProjects keeps the numbers up to last from being given to new projects: there are rows of such projects, although the registry does not know
// them.
func (r *Registry) ReserveProjects(ctx context.Context, last int64) error {
	err := r.write(ctx, 0, func(t *tx) error {
		if last := min(last, maxReserved); last > t.next.sequences[KindProject] {
			return t.put(&sequence{KindProject, last})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reserving the numbers of projects: %w", err)
	}
	return nil
}

// UpdateProject changes a project. Mistakes are *FieldError; a project that does not exist is ErrNotFound.
func (r *Registry) UpdateProject(ctx context.Context, id int64, change ProjectChange) (*Project, error) {
	var p Project
	err := r.write(ctx, id, func(t *tx) error {
		before := t.next.Project(id)
		if before == nil {
			return ErrNotFound
		}
		p = *before
		change.apply(&p)
		if err := p.check(); err != nil {
			return err
		}
		changed := p
		return t.put(&changed)
	})
	if err != nil {
		return nil, fmt.Errorf("changing project %d: %w", id, err)
	}
	return &p, nil
}

// LastChange returns when the project was last changed, or created.
func (p *Project) LastChange() time.Time {
	if p.UpdatedAt.IsZero() {
		return p.CreatedAt
	}
	return p.UpdatedAt
}

func (c *ProjectChange) apply(p *Project) {
	if !c.At.IsZero() {
		p.UpdatedAt = moment(c.At)
	}
	if c.Name != nil {
		p.Name = strings.TrimSpace(*c.Name)
	}
	if c.Timezone != nil {
		p.Timezone = *c.Timezone
	}
	if c.WeekStart != nil {
		p.WeekStart = *c.WeekStart
	}
	if c.TestAccountFilters != nil {
		p.TestAccountFilters = *c.TestAccountFilters
	}
	if c.PathCleaningFilters != nil {
		p.PathCleaningFilters = *c.PathCleaningFilters
	}
	if c.Retention != nil && p.Retention != *c.Retention {
		p.Retention = *c.Retention
		p.Epoch++
	}
	if c.DisplayNames != nil {
		p.DisplayNames = *c.DisplayNames
	}
	set(&p.AnonymizeIPs, c.AnonymizeIPs)
	if len(c.Others) > 0 {
		others := p.OtherSettings()
		maps.Copy(others, c.Others)
		maps.DeleteFunc(others, func(_ string, value json.RawMessage) bool { return value == nil })
		if p.Others = ""; len(others) > 0 {
			p.Others = string(encode(others))
		}
	}
}

// OtherSettings returns the settings that clients keep here and that have no effect.
func (p *Project) OtherSettings() map[string]json.RawMessage {
	others := map[string]json.RawMessage{}
	if p.Others != "" {
		_ = json.Unmarshal([]byte(p.Others), &others) // the registry wrote it
	}
	return others
}

// check returns what is wrong with a project. It empties lists without items.
func (p *Project) check() error {
	switch {
	case p.Name == "":
		return required("name")
	case utf8.RuneCountInString(p.Name) > maxProjectName:
		return tooLong("name", maxProjectName)
	}
	if _, err := loadZone(p.Timezone); err != nil {
		return unknownZone(p.Timezone)
	}
	if err := inRange("week_start_day", p.WeekStart, 0, 1); err != nil {
		return err
	}
	if err := inRange("retention_days", p.Retention, 0, maxRetention); err != nil {
		return err
	}
	filters, err := testAccounts(p)
	if err != nil {
		return invalid("test_account_filters", "%v", err)
	}
	if filters == nil {
		p.TestAccountFilters = ""
	}
	rules, err := pathCleaning(p)
	if err != nil {
		return invalid("path_cleaning_filters", "%v", err)
	}
	if rules == nil {
		p.PathCleaningFilters = ""
	}
	names, err := displayNames(p)
	switch {
	case err != nil:
		return invalid("person_display_name_properties", "%v", err)
	case names == nil:
		p.DisplayNames = ""
	}
	return nil
}

// maxDisplayNames is how many properties can name a person.
const maxDisplayNames = 20

func displayNames(p *Project) ([]string, error) {
	if p.DisplayNames == "" {
		return nil, nil
	}
	var names []string
	if err := json.Unmarshal([]byte(p.DisplayNames), &names); err != nil {
		return nil, errors.New("Expected a list of property names.") //nolint:staticcheck // a message of the API
	}
	if len(names) > maxDisplayNames {
		return nil, fmt.Errorf("There can be at most %d properties.", maxDisplayNames) //nolint:staticcheck // a message of the API
	}
	for _, name := range names {
		if name == "" || utf8.RuneCountInString(name) > maxPropertyName {
			return nil, fmt.Errorf("A property name must have 1 to %d characters.", maxPropertyName) //nolint:staticcheck // a message of the API
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return names, nil
}

func testAccounts(p *Project) (*query.Condition, error) {
	if p.TestAccountFilters == "" {
		return nil, nil
	}
	return query.ParseTestAccounts([]byte(p.TestAccountFilters)) // the caller names the field
}

func pathCleaning(p *Project) ([]query.PathCleaning, error) {
	if p.PathCleaningFilters == "" {
		return nil, nil
	}
	return query.ParsePathCleaning([]byte(p.PathCleaningFilters)) // the caller names the field
}

// loadZone loads an IANA zone, if it is one that queries may name.
func loadZone(name string) (*time.Location, error) {
	if _, ok := schema.LookupZone(name); !ok {
		return nil, fmt.Errorf("unknown time zone %q", name)
	}
	return time.LoadLocation(name)
}

// unknownZone says that there is no such zone, and which one was probably meant.
func unknownZone(name string) *FieldError {
	mistake := notChoice("timezone", name)
	if near := schema.NearestZone(name); near != "" {
		mistake.Message += fmt.Sprintf(" Perhaps you meant %q?", near)
	}
	return mistake
}

// moment truncates a time to what every store can hold: UTC, microseconds.
func moment(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
