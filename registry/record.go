package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// entity is the content of a record: an insight, a key, a version of an endpoint. Each type of entity is one file of this package, with its fields, its checks,
// its place in the snapshot and the history of its JSON; and one row in kinds.
type entity interface {
	// name returns the name of the record.
	name() recordName
	// unique returns the keys that no two entities of the kind may share. A key that is unique only within a project contains the project.
	unique() []string
	// size returns the approximate size of its texts in bytes.
	size() int
	// checkSize returns an error if the entity is too large.
	checkSize() error
	// put shows the entity in a draft, and returns what it replaced.
	put(d *draft, p *projectState) (Stored, error)
	// remove takes the entity with the same name out of a draft, and returns what was there.
	remove(d *draft, p *projectState) Stored
}

// recordName identifies a record.
type recordName struct {
	project int64
	kind    Kind
	id      string
}

// kindSpec is a row of kinds.
type kindSpec struct {
	kind Kind
	// read returns the entity of a record. Without Data it has only its name, and is there to be removed.
	read func(rec *Record) (entity, error)
	// history lists the upgrades of the kind's JSON since its first release, oldest first. A new field needs no entry if its zero value is right for older
	// records, and if what it says stays true while a version works that does not know it.
	history []upgrade
}

// upgrade brings the fields of an older record to the next form.
type upgrade func(fields map[string]json.RawMessage) error

// kinds lists all kinds of records, each after those that it is a part of.
var kinds = []kindSpec{
	{kind: kindSequence, read: readSequence},
	{kind: kindRemoval, read: readRemoval, history: removalHistory},
	{kind: KindProject, read: readProject, history: projectHistory},
	{kind: KindKey, read: readKey},
	{kind: KindTokenSecrets, read: readTokenSecrets},
	{kind: KindCaptureToken, read: readCaptureToken},
	{kind: KindEndpoint, read: readEndpoint},
	{kind: KindVersion, read: readVersion},
	{kind: KindVariable, read: readVariable},
	{kind: KindInsight, read: readInsight},
	{kind: KindDashboard, read: readDashboard},
	{kind: KindTile, read: readTile},
	{kind: KindProperty, read: readProperty},
	{kind: KindGroupType, read: readGroupType},
	{kind: KindCohort, read: readCohort, history: cohortHistory},
	{kind: KindAction, read: readAction},
	{kind: KindAlert, read: readAlert},
	{kind: KindDefinition, read: readDefinition},
	{kind: KindAnnotation, read: readAnnotation},
	{kind: KindDeletion, read: readDeletion},
}

// The kinds of records.
const (
	KindProject      Kind = "project"
	KindKey          Kind = "key"
	KindTokenSecrets Kind = "token_secrets"
	KindCaptureToken Kind = "capture_token"
	KindEndpoint     Kind = "endpoint"
	KindVersion      Kind = "version"
	KindVariable     Kind = "variable"
	KindInsight      Kind = "insight"
	KindDashboard    Kind = "dashboard"
	KindTile         Kind = "tile"
	KindProperty     Kind = "property"
	KindGroupType    Kind = "group_type"
	KindCohort       Kind = "cohort"
	KindAction       Kind = "action"
	KindAlert        Kind = "alert"
	KindDefinition   Kind = "definition"
	KindAnnotation   Kind = "annotation"
	KindDeletion     Kind = "deletion"

	kindSequence Kind = "sequence"
	kindRemoval  Kind = "removal"
	kindUser     Kind = "user" // only has a sequence
)

// ranks are the positions of the kinds in kinds.
var ranks = func() map[Kind]int {
	ranks := make(map[Kind]int, len(kinds))
	for i := range kinds {
		ranks[kinds[i].kind] = i
	}
	return ranks
}()

// formField is the field of a record's JSON with the number of upgrades that it has had; absent for none.
const formField = "$form"

// record returns the record of an entity.
func (k *kindSpec) record(e entity) Record {
	name := e.name()
	var value any = e
	if s, ok := e.(interface{ stored() any }); ok {
		value = s.stored()
	}
	data := encode(value)
	if len(k.history) > 0 {
		data = fmt.Appendf(nil, `{"%s":%d,%s`, formField, len(k.history), data[1:])
	}
	return Record{Project: name.project, Kind: name.kind, ID: name.id, Unique: e.unique(), Data: data}
}

// entity returns the content of a record, upgraded to the current form.
func (k *kindSpec) entity(rec *Record) (entity, error) {
	if rec.Data == nil {
		return k.read(rec)
	}
	current := *rec
	var form struct {
		Form int `json:"$form"`
	}
	if err := json.Unmarshal(rec.Data, &form); err != nil {
		return nil, fmt.Errorf("reading the %s %q: %w", k.kind, rec.ID, err)
	}
	switch {
	case form.Form > len(k.history):
		return nil, fmt.Errorf("the %s %q has form %d, and this program knows %d: a newer version of the program wrote it", k.kind, rec.ID, form.Form, len(k.history))
	case form.Form < len(k.history):
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(rec.Data, &fields); err != nil {
			return nil, fmt.Errorf("reading the %s %q: %w", k.kind, rec.ID, err)
		}
		for _, step := range k.history[max(form.Form, 0):] {
			if err := step(fields); err != nil {
				return nil, fmt.Errorf("reading the %s %q, which an older version of the program wrote: %w", k.kind, rec.ID, err)
			}
		}
		current.Data = encode(fields)
	}
	e, err := k.read(&current)
	if err != nil {
		return nil, fmt.Errorf("reading the %s %q: %w", k.kind, rec.ID, err)
	}
	return e, nil
}

// Form numbers the form of records: it grows with each kind that is added, and with each step of a kind's history. A program can't read records of a greater
// form than its own.
func Form() int {
	form := len(kinds)
	for i := range kinds {
		form += len(kinds[i].history)
	}
	return form
}

// encode writes a value as JSON without changing its texts: queries are compared byte for byte.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("BUG: an entity that is not JSON: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decode fills v from the data of a record, if it has any.
func decode(rec *Record, v any) error {
	if rec.Data == nil {
		return nil
	}
	return json.Unmarshal(rec.Data, v)
}

// number returns the id of a record as a number.
func number(rec *Record) (int64, error) {
	n, err := strconv.ParseInt(rec.ID, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", rec.ID)
	}
	return n, nil
}

func digits(n int64) string { return strconv.FormatInt(n, 10) }

// IDText returns a text that a user chose in the form that it has in a record's id or unique key.
func IDText(text string) string { return string(encode(text)) }

// within makes a key unique within a project only.
func within(project int64, key string) string { return digits(project) + " " + key }

// sequence is the last number that was used for a kind.
type sequence struct {
	kind Kind
	Last int64 `json:"last"`
}

func readSequence(rec *Record) (entity, error) {
	s := &sequence{kind: Kind(rec.ID)}
	return s, decode(rec, s)
}

func (s *sequence) name() recordName { return recordName{kind: kindSequence, id: string(s.kind)} }
func (s *sequence) unique() []string { return nil }
func (s *sequence) size() int        { return 0 }
func (s *sequence) checkSize() error { return nil }

func (s *sequence) put(d *draft, _ *projectState) (Stored, error) {
	d.reserve(s.kind, s.Last)
	return Stored{}, nil
}

func (s *sequence) remove(d *draft, _ *projectState) Stored {
	delete(d.ownSequences(), s.kind)
	return Stored{}
}

// UniqueKeys returns the unique keys of a record that was stored without them, and an error if it can't be read. Stores use it to upgrade what an earlier
// release wrote.
func UniqueKeys(rec *Record) ([]string, error) {
	rank, known := ranks[rec.Kind]
	if !known {
		return nil, fmt.Errorf("unknown kind %q", rec.Kind)
	}
	e, err := kinds[rank].entity(rec)
	if err != nil {
		return nil, err
	}
	return e.unique(), nil
}
