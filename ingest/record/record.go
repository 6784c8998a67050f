package record

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Kind is what a record describes.
type Kind int

// The kinds of records.
const (
	Event Kind = iota
	Person
	Group
	Cohort
)

// Record is an event, or a description of a person, a group, or the people of a cohort.
type Record struct {
	Line       int // number of the line, from 1
	Kind       Kind
	Properties Object
	CreatedAt  time.Time // of a person or group; zero if it is not given

	// An event.
	Event      string
	DistinctID string
	Timestamp  time.Time
	UUID       uuid.UUID
	HasUUID    bool
	Elements   string
	Arrived    time.Time // when it came in; zero when that is not known

	// PersonID is the person of an event, or the person that is described, if the source of the record names it. Otherwise it is nil, and the distinct ids decide.
	PersonID uuid.UUID
	// PersonProperties are the properties that the person had at the time of the event; nil if they are not given.
	PersonProperties Object
	// OtherID is another distinct id of the event's person. It merges people as the $anon_distinct_id of an $identify does.
	OtherID string
	// SharedID reports whether the newest capture route took the event without its person because of its distinct id. See IsSharedID.
	SharedID bool

	// A person, or people of a cohort.
	DistinctIDs []string
	Cohort      int64

	// A group.
	GroupType  string
	GroupIndex int // -1 if it is not given
	GroupKey   string

	// Source is the text of the record.
	Source []byte
}

// Error is a record that cannot be used. More can be read after it.
type Error struct {
	Line   int // number of the line, from 1
	Reason error
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Reason) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// Parser reads records one after another, which share the names of their properties. Its zero value is ready for use.
type Parser struct {
	// Unknown is called for each field that the kind of record does not have. Default: such fields are ignored.
	Unknown func(name string)

	keys   map[string]string
	fields Object
	size   int // how many properties the last record had
}

// Parse reads a record from a JSON object. Its errors are for the people who sent it. The record keeps text in memory, and each value of its properties keeps
// all of them.
func (p *Parser) Parse(text []byte) (Record, error) {
	r := Record{GroupIndex: -1, Source: text}
	o, properties, err := p.Fields(text)
	if err != nil {
		return r, err
	}
	if r.Properties, err = propertiesOf(o, properties); err != nil {
		return r, err
	}
	kind, _, err := textField(o, "type")
	if err != nil {
		return r, err
	}
	switch kind {
	case "", "event":
		err = r.parseEvent(o)
	case "person":
		r.Kind = Person
		err = r.parsePerson(o)
	case "group":
		r.Kind = Group
		err = r.parseGroup(o)
	case "cohort":
		r.Kind = Cohort
		err = r.parseCohort(o)
	default:
		err = fmt.Errorf("its type %s is not event, person, group or cohort", Quoted(kind))
	}
	if p.Unknown != nil && err == nil {
		for _, m := range o {
			if !r.Kind.hasField(m.Key) {
				p.Unknown(m.Key)
			}
		}
	}
	return r, err
}

func (r *Record) parseEvent(o Object) error {
	var err error
	if r.Event, err = neededField(o, "event"); err != nil {
		return err
	}
	if r.DistinctID, err = neededField(o, "distinct_id"); err != nil {
		return err
	}
	timestamp, err := neededField(o, "timestamp")
	if err != nil {
		return err
	}
	var ok bool
	if r.Timestamp, ok = parseTime(timestamp); !ok {
		return fmt.Errorf("its timestamp %s is not an ISO 8601 time between 1900 and 2261", Quoted(timestamp))
	}
	id, given, err := textField(o, "uuid")
	if err != nil {
		return err
	}
	if given && id != "" {
		if r.UUID, err = uuid.Parse(id); err != nil {
			return fmt.Errorf("its uuid %s is not a UUID", Quoted(id))
		}
		r.HasUUID = true
	}
	if r.PersonID, err = personField(o); err != nil {
		return err
	}
	r.SharedID = string(o.Get("shared_id")) == "true"
	r.Elements, _, err = textField(o, "elements_chain")
	if chain, ok := r.Properties.Get("$elements_chain").unquote(); ok && r.Elements == "" {
		r.Elements = chain
	}
	return err
}

func (r *Record) parsePerson(o Object) error {
	var err error
	if r.PersonID, err = personField(o); err != nil {
		return err
	}
	ids := o.Get("distinct_ids")
	if ids == nil {
		id, err := neededField(o, "distinct_id")
		if err != nil {
			return errors.New("a person needs distinct_ids")
		}
		r.DistinctIDs = []string{id}
		return r.parseCreatedAt(o)
	}
	if r.DistinctIDs, err = distinctIDsOf(ids); err != nil {
		return err
	}
	return r.parseCreatedAt(o)
}

// distinctIDsOf reads a list of distinct ids, each once.
func distinctIDsOf(ids Value) ([]string, error) {
	list := ids.Texts()
	if len(list) == 0 {
		return nil, errors.New("its distinct_ids are not a list of names")
	}
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	}), nil
}

func (r *Record) parseGroup(o Object) error {
	var err error
	if r.GroupType, err = neededField(o, "group_type"); err != nil {
		return err
	}
	if r.GroupKey, err = neededField(o, "group_key"); err != nil {
		return err
	}
	if index := o.Get("group_type_index"); index.given() {
		r.GroupIndex, err = strconv.Atoi(string(index))
		if err != nil || r.GroupIndex < 0 || r.GroupIndex >= physical.GroupTypes {
			return fmt.Errorf("its group_type_index %s is not a number from 0 to %d", Quoted(string(index)), physical.GroupTypes-1)
		}
	}
	return r.parseCreatedAt(o)
}

func (r *Record) parseCohort(o Object) error {
	id := o.Get("cohort_id")
	if !id.given() {
		return errors.New("it has no cohort_id")
	}
	var err error
	if r.Cohort, err = strconv.ParseInt(string(id), 10, 64); err != nil || r.Cohort < 1 {
		return fmt.Errorf("its cohort_id %s is not a cohort's number", Quoted(string(id)))
	}
	ids := o.Get("distinct_ids")
	if ids == nil {
		return errors.New("a cohort line needs distinct_ids")
	}
	r.DistinctIDs, err = distinctIDsOf(ids)
	return err
}

func (r *Record) parseCreatedAt(o Object) error {
	text, given, err := textField(o, "created_at")
	if err != nil || !given {
		return err
	}
	var ok bool
	if r.CreatedAt, ok = parseTime(text); !ok {
		return fmt.Errorf("its created_at %s is not an ISO 8601 time between 1900 and 2261", Quoted(text))
	}
	return nil
}

// propertiesField is the field that is read as an object of its own.
const propertiesField = "properties"

// textField reads a field that is a string, or a number, which stands for its text. The field may be left out or null.
func textField(o Object, name string) (text string, given bool, err error) {
	value := o.Get(name)
	if !value.given() {
		return "", false, nil
	}
	if text, ok := value.Text(); ok {
		return text, true, nil
	}
	return "", false, fmt.Errorf("its %s is not a string", name)
}

func neededField(o Object, name string) (string, error) {
	text, _, err := textField(o, name)
	if err == nil && text == "" {
		return "", fmt.Errorf("it has no %s", name)
	}
	return text, err
}
