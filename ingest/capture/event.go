package capture

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

const (
	maxEventName  = 200 // characters
	maxDistinctID = 200 // characters
)

// cookielessID is what posthog-js sends as the distinct id of every visitor in its cookieless mode: the server is to compute one.
const cookielessID = "$posthog_cookieless"

// isCookieless reports whether an event was sent in cookieless mode.
func isCookieless(properties record.Object) bool {
	switch string(properties.Get(cookielessMode)) {
	case "", "false", "null", "0", `""`:
		return false
	}
	return true
}

// Names of what is read from an event here.
const (
	setField        = "$set"
	setOnceField    = "$set_once"
	unsetField      = "$unset"
	ipProperty      = "$ip"
	sentAtProperty  = "$sent_at"
	ignoreSentAt    = "$ignore_sent_at"
	cookielessMode  = "$cookieless_mode"
	elements        = "$elements"
	elementsChain   = "$elements_chain"
	osProperty      = "$os"
	osNameProperty  = "$os_name"
	isServer        = "$is_server" // then the operating system is not the user's
	identifyEvent   = "$identify"
	propertiesField = "properties"
)

// invalid refuses an event because of a field. The text continues a sentence that begins with "The event".
func invalid(code Code, attr, format string, args ...any) *RefusalError {
	return &RefusalError{Code: code, Attr: attr, Detail: fmt.Sprintf(format, args...)}
}

// fill makes a record of the event that was read. If engage is set, an event without a name is a $identify.
func (d *decoder) fill(r *record.Record, engage bool) *RefusalError {
	if refused := d.checkProperties(); refused != nil {
		return refused
	}
	var refused *RefusalError
	if r.Event, refused = eventName(d.fields.Get("event"), engage); refused != nil {
		return refused
	}
	if r.DistinctID, refused = distinctID(d.fields, d.properties); refused != nil {
		return refused
	}
	if r.UUID, refused = d.uuid(d.fields.Get("uuid")); refused != nil {
		return refused
	}
	r.HasUUID = true
	if refused := d.mergeSets(); refused != nil {
		return refused
	}
	if mode := d.properties.Get(cookielessMode); mode != nil && !isBool(mode) {
		return invalid(InvalidEvent, propertiesField+"."+cookielessMode, "has a %s that is not a boolean.", cookielessMode)
	}
	if r.Timestamp, refused = d.timestamp(); refused != nil {
		return refused
	}
	return d.finish(r)
}

// checkProperties refuses properties that are not an object. An object has been read already.
func (d *decoder) checkProperties() *RefusalError {
	if given := d.fields.Get(propertiesField); given == nil {
		d.properties = d.properties[:0]
	} else if given[0] != '{' {
		return invalid(InvalidEvent, propertiesField, "has properties that are not an object.")
	}
	return nil
}

// finish adds what the request says to the properties of an event.
func (d *decoder) finish(r *record.Record) *RefusalError {
	r.Elements = d.elements()
	if name := d.properties.Get(osNameProperty); name != nil && d.properties.Get(osProperty) == nil && string(d.properties.Get(isServer)) != "true" {
		d.properties = d.properties.Set(osProperty, name)
	}
	if d.sentAt != nil {
		d.properties = d.properties.Set(sentAtProperty, d.sentAt)
	}
	if given := d.properties.Get(ipProperty); d.ip != nil && (given == nil || string(given) == `""`) {
		d.properties = d.properties.Set(ipProperty, d.ip)
	}
	if d.properties.ManyNames() {
		return invalid(InvalidEvent, propertiesField, "has more than %d property names.", record.MaxNames)
	}
	r.Properties = d.properties
	return nil
}

func isBool(v record.Value) bool { return v[0] == 't' || v[0] == 'f' }

func eventName(v record.Value, engage bool) (string, *RefusalError) {
	if v == nil || v.IsNull() {
		if engage {
			return identifyEvent, nil
		}
		return "", invalid(MissingEventName, "event", "has no name: send it as event.")
	}
	if v[0] != '"' {
		return "", invalid(InvalidEvent, "event", "has a name that is not a string.")
	}
	name, _ := v.Text()
	if name == "" {
		return "", invalid(MissingEventName, "event", "has an empty name.")
	}
	return cut(name, maxEventName), nil
}

// cut shortens a text to at most that many characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for at := range text {
		if most--; most < 0 {
			return text[:at]
		}
	}
	return text
}

// distinctID finds the distinct id of an event. A value that is not a string stands for its JSON text.
func distinctID(fields, properties record.Object) (string, *RefusalError) {
	v := fields.Get("distinct_id")
	if v == nil || v.IsNull() {
		v = fields.Get("$distinct_id")
	}
	if v == nil || v.IsNull() {
		v = properties.Get("distinct_id")
	}
	if v == nil || v.IsNull() {
		return "", invalid(MissingDistinctID, "distinct_id", "has no distinct_id.")
	}
	id, ok := v.Text()
	if !ok {
		id = sortedText(v)
	}
	if strings.TrimSpace(id) == "" {
		return "", invalid(MissingDistinctID, "distinct_id", "has an empty distinct_id.")
	}
	return cut(id, maxDistinctID), nil
}

// sortedText is a value as JSON text with the keys of its objects sorted, as PostHog writes it.
func sortedText(v record.Value) string {
	if v[0] != '{' && v[0] != '[' {
		return string(v)
	}
	decoder := json.NewDecoder(bytes.NewReader(v))
	decoder.UseNumber()
	var value any
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if decoder.Decode(&value) != nil || encoder.Encode(value) != nil {
		return string(v)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// uuid reads the UUID of an event, or makes one if there is none.
func (d *decoder) uuid(v record.Value) (uuid.UUID, *RefusalError) {
	if v == nil || v.IsNull() || string(v) == `""` {
		return d.newUUID(), nil
	}
	if v[0] == '"' {
		text, _ := v.Text()
		if id, ok := parseUUID(text); ok {
			return id, nil
		}
	}
	return uuid.UUID{}, invalid(InvalidEvent, "uuid", "has a uuid that is not a UUID.")
}

func parseUUID(text string) (uuid.UUID, bool) {
	if len(text) == 38 && (text[0] != '{' || text[37] != '}') {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// newUUID makes a UUID of version 7, in the order of the events of a request.
func (d *decoder) newUUID() (id uuid.UUID) {
	ms := uint64(max(d.clock.now.UnixMilli(), 0))
	binary.BigEndian.PutUint64(id[:8], ms<<16|7<<12|uint64(d.next&0xfff))
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()>>2|1<<63) //nolint:gosec // not a secret
	d.next++
	return id
}

// mergeSets moves what an event sets on its person from its fields to its properties. In a conflict, the fields win.
func (d *decoder) mergeSets() *RefusalError {
	for _, name := range [...]string{setField, setOnceField} {
		given := d.fields.Get(name)
		if given == nil || given.IsNull() {
			continue
		}
		if given[0] != '{' {
			return invalid(InvalidEvent, name, "has a %s that is not an object.", name)
		}
		if inner := d.properties.Get(name); len(inner) > 0 && inner[0] == '{' {
			given = merged(inner, given)
		}
		d.properties = d.properties.Set(name, given)
	}
	if given := d.fields.Get(unsetField); given != nil && (given[0] == '[' || given[0] == '{') {
		if keys := d.properties.Get(unsetField).Keys(); len(keys) > 0 {
			given = listOf(append(keys, given.Keys()...))
		}
		d.properties = d.properties.Set(unsetField, given)
	}
	return nil
}

// merged returns the object under with the members of over put over it.
func merged(under, over record.Value) record.Value {
	o := under.Object()
	at := make(map[string]int, len(o))
	for i := range o {
		at[o[i].Key] = i
	}
	for _, m := range over.Object() {
		if i, ok := at[m.Key]; ok {
			o[i].Value = m.Value
			continue
		}
		o = append(o, m)
	}
	return o.Append(nil)
}

func listOf(texts []string) record.Value {
	list := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, record.TextValue(text)...)
	}
	return append(list, ']')
}

// timestamp computes when an event happened.
func (d *decoder) timestamp() (time.Time, *RefusalError) {
	if offset := d.fields.Get("offset"); offset != nil && !offset.IsNull() {
		ms, err := strconv.ParseInt(string(offset), 10, 64)
		if err != nil {
			return time.Time{}, invalid(InvalidEvent, "offset", "has an offset that is not a whole number of milliseconds.")
		}
		return d.clock.before(ms), nil
	}
	given := d.fields.Get("timestamp")
	if given == nil || given.IsNull() {
		return d.clock.now, nil
	}
	if given[0] != '"' {
		return time.Time{}, invalid(InvalidEvent, "timestamp", "has a timestamp that is not a string.")
	}
	text, _ := given.Text()
	return d.clock.event(text, string(d.properties.Get(ignoreSentAt)) == "true"), nil
}
