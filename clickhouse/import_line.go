package clickhouse

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// lineKind is what a line describes.
type lineKind int

const (
	eventLine lineKind = iota
	personLine
	groupLine
	cohortLine
)

// importLine is one line of an import, understood.
type importLine struct {
	number     int
	kind       lineKind
	properties object
	createdAt  time.Time // of a person or group; zero when it is not given

	// An event.
	event      string
	distinctID string
	timestamp  time.Time
	uuid       uuid.UUID
	hasUUID    bool
	elements   string

	// A person, or people of a cohort.
	distinctIDs []string
	cohort      int64

	// A group.
	groupType  string
	groupIndex int // -1 when it is not given
	groupKey   string
}

// The namespace of the ids that are made from content. It must never change: importing again relies on it.
var namespace = uuid.MustParse("6f1d5d0e-3b53-5a7e-9a52-0c3f6f6b9d11")

// eventUUID is the uuid of an event that has none: the same line in the same project has the same one.
func eventUUID(project int64, line []byte) uuid.UUID {
	return uuid.NewSHA1(namespace, append(fmt.Appendf(nil, "event %d ", project), line...))
}

// personUUID is the id of the person that a distinct id makes.
func personUUID(project int64, distinctID string) uuid.UUID {
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "person %d %s", project, distinctID))
}

// parseImportLine reads one line. Its errors are for the people who made the file.
func parseImportLine(text []byte) (importLine, error) {
	line := importLine{groupIndex: -1}
	o, err := parseObject(text)
	if err != nil {
		return line, err
	}
	if properties := o.get("properties"); properties != nil && string(properties) != "null" {
		line.properties, err = parseNames(properties, MaxNames)
		switch {
		case errors.Is(err, errManyNames):
			return line, err
		case err != nil:
			return line, errors.New("its properties are not a JSON object")
		}
	}
	kind, _, err := textField(o, "type")
	if err != nil {
		return line, err
	}
	switch kind {
	case "", "event":
		return line, line.parseEvent(o)
	case "person":
		line.kind = personLine
		return line, line.parsePerson(o)
	case "group":
		line.kind = groupLine
		return line, line.parseGroup(o)
	case "cohort":
		line.kind = cohortLine
		return line, line.parseCohort(o)
	}
	return line, fmt.Errorf("its type %s is none of event, person, group and cohort", quotedTrim(kind))
}

func (l *importLine) parseEvent(o object) error {
	var err error
	if l.event, err = neededField(o, "event"); err != nil {
		return err
	}
	if l.distinctID, err = neededField(o, "distinct_id"); err != nil {
		return err
	}
	timestamp, err := neededField(o, "timestamp")
	if err != nil {
		return err
	}
	var ok bool
	if l.timestamp, ok = parseTime(timestamp); !ok {
		return fmt.Errorf("its timestamp %s is no ISO 8601 time between 1900 and 2261", quotedTrim(timestamp))
	}
	id, given, err := textField(o, "uuid")
	if err != nil {
		return err
	}
	if given && id != "" {
		if l.uuid, err = uuid.Parse(id); err != nil {
			return fmt.Errorf("its uuid %s is none", quotedTrim(id))
		}
		l.hasUUID = true
	}
	l.elements, _, err = textField(o, "elements_chain")
	if chain, ok := unquote(l.properties.get("$elements_chain")); ok && l.elements == "" {
		l.elements = chain
	}
	return err
}

func (l *importLine) parsePerson(o object) error {
	ids := o.get("distinct_ids")
	if ids == nil {
		id, err := neededField(o, "distinct_id")
		if err != nil {
			return errors.New("a person needs distinct_ids")
		}
		l.distinctIDs = []string{id}
		return l.parseCreatedAt(o)
	}
	var err error
	if l.distinctIDs, err = distinctIDsOf(ids); err != nil {
		return err
	}
	return l.parseCreatedAt(o)
}

// distinctIDsOf reads a list of distinct ids, each once.
func distinctIDsOf(ids []byte) ([]string, error) {
	list, ok := textList(ids)
	if !ok || len(list) == 0 {
		return nil, errors.New("its distinct_ids are not a list of names")
	}
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	}), nil
}

func (l *importLine) parseGroup(o object) error {
	var err error
	if l.groupType, err = neededField(o, "group_type"); err != nil {
		return err
	}
	if l.groupKey, err = neededField(o, "group_key"); err != nil {
		return err
	}
	if index := o.get("group_type_index"); index != nil && string(index) != "null" {
		l.groupIndex, err = strconv.Atoi(string(index))
		if err != nil || l.groupIndex < 0 || l.groupIndex >= maxGroupTypes {
			return fmt.Errorf("its group_type_index %s is no number from 0 to %d", quotedTrim(string(index)), maxGroupTypes-1)
		}
	}
	return l.parseCreatedAt(o)
}

func (l *importLine) parseCreatedAt(o object) error {
	text, given, err := textField(o, "created_at")
	if err != nil || !given {
		return err
	}
	var ok bool
	if l.createdAt, ok = parseTime(text); !ok {
		return fmt.Errorf("its created_at %s is no ISO 8601 time between 1900 and 2261", quotedTrim(text))
	}
	return nil
}

// textField reads a field that is a string. A number is taken for its text. The field may be left out or null.
func textField(o object, name string) (text string, given bool, err error) {
	value := o.get(name)
	if value == nil || string(value) == "null" {
		return "", false, nil
	}
	if text, ok := nameOf(value); ok {
		return text, true, nil
	}
	return "", false, fmt.Errorf("its %s is not a string", name)
}

func neededField(o object, name string) (string, error) {
	text, _, err := textField(o, name)
	if err == nil && text == "" {
		return "", fmt.Errorf("it has no %s", name)
	}
	return text, err
}

// nameOf takes a string, or a number for its text.
func nameOf(value []byte) (string, bool) {
	if s, ok := unquote(value); ok {
		return s, true
	}
	if len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
		return string(value), true
	}
	return "", false
}

// textList reads a canonical JSON array of names.
func textList(value []byte) ([]string, bool) {
	if len(value) < 2 || value[0] != '[' {
		return nil, false
	}
	var list []string
	for at := 1; value[at] != ']'; {
		start := at
		if at = valueEnd(value, at); at < 0 {
			panic("BUG: a canonical JSON array does not scan")
		}
		name, ok := nameOf(value[start:at])
		if !ok || name == "" {
			return nil, false
		}
		list = append(list, name)
		if value[at] == ',' {
			at++
		}
	}
	return list, true
}

var timeLayouts = []string{
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05Z07",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04",
	"2006-01-02",
}

// parseTime reads an ISO 8601 time, with a blank or a T before the hour. Without offset it is UTC. Years before
// 1900 and after 2261 do not fit the driver's times.
func parseTime(s string) (time.Time, bool) {
	if len(s) < len("2006-01-02") || len(s) > 40 || s[4] != '-' || s[7] != '-' {
		return time.Time{}, false
	}
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + s[11:]
	}
	if rest, ok := strings.CutSuffix(s, " UTC"); ok {
		s = rest + "Z"
	}
	for _, layout := range timeLayouts {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		t = t.UTC().Truncate(time.Microsecond)
		return t, t.Year() >= 1900 && t.Year() <= 2261
	}
	return time.Time{}, false
}
