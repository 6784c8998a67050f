package capture

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// Result is the outcome for one event of the newest route.
type Result struct {
	UUID    uuid.UUID
	Outcome Outcome
	Details string // empty for none
}

// Outcome says whether an event was taken.
type Outcome string

// The outcomes of events.
const (
	Taken   Outcome = "ok"
	Dropped Outcome = "drop"
)

// The details of results.
const (
	missingName    = "missing_event_name"
	longName       = "event_name_too_long"
	missingID      = "missing_distinct_id"
	longID         = "distinct_id_too_large"
	badTime        = "invalid_event_timestamp"
	badProperties  = "malformed_event_properties"
	badOptions     = "invalid_options"
	noCookieless   = "cookieless_mode_required"
	tooBig         = "event_too_big"
	withoutPersons = "person_processing_disabled"
)

// V1 holds what the headers of the newest route say: contract capture.md, section 11.
type V1 struct {
	Token string
	// Encoding is the Content-Encoding in lower case; empty for none.
	Encoding            string
	SentAt              time.Time
	library, libVersion string
}

const maxSDKInfo = 256 // bytes

// v1Headers are the headers that a request of the newest route needs.
var v1Headers = []string{"User-Agent", "Content-Type", "PostHog-Sdk-Info", "PostHog-Attempt", "PostHog-Request-Id", "PostHog-Request-Timestamp"}

// ReadV1 reads the headers of a request of the newest route. It returns a *RefusalError if headers are missing or wrong. It checks only the form of the token.
func ReadV1(header func(name string) string) (V1, error) {
	var v V1
	scheme, token, _ := strings.Cut(header("Authorization"), " ")
	if scheme == "" {
		return v, refuse(MissingKey, "There is no project token: send it as Authorization: Bearer <token>.")
	}
	if !strings.EqualFold(scheme, "Bearer") {
		return v, refuse(InvalidKey, "The header Authorization does not hold a project token: send it as Bearer <token>.")
	}
	var err error
	if v.Token, err = CheckToken(token); err != nil {
		return v, err
	}
	var missing []string
	for _, name := range v1Headers {
		if header(name) == "" {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return v, refuse(InvalidHeader, "The request has no header %s.", strings.Join(missing, ", "))
	}
	if typ, _, _ := strings.Cut(header("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(typ), "application/json") {
		return v, refuse(UnsupportedType, "The Content-Type %s is not application/json.", record.Quoted(typ))
	}
	switch v.Encoding = strings.ToLower(header("Content-Encoding")); v.Encoding {
	case "", "identity", gzipEncoding, deflateEncoding, brotliEncoding, zstdEncoding:
	default:
		return v, refuse(UnsupportedType, "The Content-Encoding %s is not gzip, deflate, br or zstd.", record.Quoted(v.Encoding))
	}
	if id := header("PostHog-Request-Id"); !isUUID(id) {
		return v, refuse(InvalidHeader, "The header PostHog-Request-Id is not a UUID.")
	}
	if n, err := strconv.ParseUint(header("PostHog-Attempt"), 10, 32); err != nil || n < 1 {
		return v, refuse(InvalidHeader, "The header PostHog-Attempt is not a number from 1.")
	}
	var ok bool
	if v.SentAt, ok = rfc3339(header("PostHog-Request-Timestamp")); !ok {
		return v, refuse(InvalidHeader, "The header PostHog-Request-Timestamp is not a time of RFC 3339.")
	}
	v.library, v.libVersion = libraryOf(header("PostHog-Sdk-Info"))
	return v, nil
}

func isUUID(text string) bool {
	_, ok := parseUUID(text)
	return ok
}

// libraryOf splits a name/version. Like PostHog, it does not refuse a text of another form.
func libraryOf(info string) (name, version string) {
	at := strings.LastIndexByte(info, '/')
	if at < 0 || len(info) > maxSDKInfo {
		return "", ""
	}
	name, version = strings.TrimSpace(info[:at]), strings.TrimSpace(info[at+1:])
	if name == "" || version == "" {
		return "", ""
	}
	return name, version
}

func rfc3339(text string) (time.Time, bool) {
	if len(text) > maxTime {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, upper(text))
	return at.UTC(), err == nil
}

// DecodeV1 reads a request of the newest route. It takes the good events and names the bad ones in the results; only a mistake in the request as a whole
// refuses it, with a *RefusalError.
func DecodeV1(r *Request, v V1) (*Batch, error) {
	d := newDecoder(r)
	if len(d.Body) == 0 {
		return nil, refuse(EmptyPayload, "The request has no body.")
	}
	text, err := d.inflated(d.Body, v.Encoding)
	if err != nil {
		return nil, err
	}
	if err := checkUTF8(text); err != nil {
		return nil, err
	}
	f, err := d.open(text)
	if err != nil {
		return nil, err
	}
	if f.kind != batchForm {
		return nil, refuse(ParseError, "The body is not an object with a batch of events.")
	}
	d.batch.Token, d.clock.sentAt = v.Token, v.SentAt
	if err := d.begin(text); err != nil {
		return nil, d.parseError(err)
	}
	d.in.Seek(f.start)
	b := v1Batch{decoder: d, seen: map[uuid.UUID]struct{}{}}
	if v.library != "" {
		b.library, b.libVersion = record.TextValue(v.library), record.TextValue(v.libVersion)
	}
	if err := d.each(b.read); err != nil {
		return nil, err
	}
	if _, ok := rfc3339(textOf(f.createdAt)); !ok {
		return nil, &RefusalError{Code: InvalidBatch, Attr: "created_at", Index: -1, Detail: "The created_at of the batch is not a time of RFC 3339."}
	}
	d.batch.Lines = d.lines.b
	return &d.batch, nil
}

// v1Batch reads the events of one request of the newest route.
type v1Batch struct {
	*decoder

	seen                map[uuid.UUID]struct{}
	library, libVersion record.Value
}

// read reads one event. A mistake in this event alone is reported in its result.
func (b *v1Batch) read(index int) error {
	var err error
	start := b.in.Pos()
	b.fields, b.properties, err = b.in.Event(b.fields, b.properties, b.limits.Event)
	_, bound := errors.AsType[*record.BoundError](err)
	long := errors.Is(err, record.ErrLong)
	if err != nil && !bound && !long {
		return err
	}
	id, err := b.identify(index, start, bound || long)
	if err != nil {
		return err
	}
	// Memory that an event takes besides its line.
	const kept = 256
	if err := b.Memory.Take(kept); err != nil {
		return &memoryError{err}
	}
	b.seen[id] = struct{}{}
	res := Result{UUID: id, Outcome: Dropped}
	var r record.Record
	switch {
	case long:
		res.Details = tooBig
	case bound:
		res.Details = badProperties
	default:
		r.UUID, r.HasUUID = id, true
		res.Outcome, res.Details = b.fillV1(&r)
	}
	b.batch.Results = append(b.batch.Results, res)
	if res.Outcome != Taken {
		return nil
	}
	return b.write(&r, b.in.Pos()-start)
}

// identify finds the UUID of an event, without which its outcome cannot be reported. In an event that was skipped, it searches for it.
func (b *v1Batch) identify(index, start int, passed bool) (uuid.UUID, error) {
	given := b.fields.Get("uuid")
	if passed {
		given = b.in.Field(start, "uuid")
	}
	text, _ := given.Text()
	id, ok := parseUUID(strings.TrimSpace(text))
	if !ok {
		return id, &RefusalError{Code: InvalidBatch, Attr: "uuid", Index: index, Detail: fmt.Sprintf("The event at index %d has no uuid that is a UUID.", index)}
	}
	if _, twice := b.seen[id]; twice {
		return id, &RefusalError{Code: InvalidBatch, Attr: "uuid", Index: index, Detail: fmt.Sprintf("The event at index %d has the uuid of one before it.", index)}
	}
	return id, nil
}

// fillV1 makes a record of the event that was read.
func (b *v1Batch) fillV1(r *record.Record) (Outcome, string) {
	r.Event, _ = stringOf(b.fields.Get("event"))
	r.DistinctID, _ = stringOf(b.fields.Get("distinct_id"))
	r.DistinctID = strings.TrimSpace(r.DistinctID)
	switch {
	case r.Event == "":
		return Dropped, missingName
	case len(r.Event) > maxEventName: // in bytes, as PostHog counts
		return Dropped, longName
	case r.DistinctID == "":
		return Dropped, missingID
	case len(r.DistinctID) > maxDistinctID:
		return Dropped, longID
	}
	text, _ := stringOf(b.fields.Get("timestamp"))
	at, ok := rfc3339(text)
	if !ok {
		return Dropped, badTime
	}
	if b.checkProperties() != nil || !b.addSession() {
		return Dropped, badProperties
	}
	if !b.addOptions(b.fields.Get("options")) {
		return Dropped, badOptions
	}
	if r.DistinctID == cookielessID && !isCookieless(b.properties) {
		return Dropped, noCookieless
	}
	if b.library != nil {
		b.properties = b.properties.Set("$lib", b.library).Set("$lib_version", b.libVersion)
	}
	details := ""
	if record.IsSharedID(r.DistinctID) {
		b.properties = b.properties.Set(processProfile, falseValue)
		r.SharedID, details = true, withoutPersons
	}
	if r.Timestamp = b.clock.bounded(at); string(b.properties.Get(ignoreSentAt)) != "true" {
		r.Timestamp = b.clock.corrected(at)
	}
	if b.finish(r) != nil {
		return Dropped, badProperties
	}
	return Taken, details
}

func stringOf(v record.Value) (string, bool) {
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	return v.Text()
}

// addSession turns the fields for session and window into properties. It reports whether they are valid.
func (b *v1Batch) addSession() bool {
	for _, name := range [...]string{"session_id", "window_id"} {
		given := b.fields.Get(name)
		if given == nil || given.IsNull() {
			continue
		}
		if given[0] != '"' {
			return false
		}
		b.properties = b.properties.Set("$"+name, given)
	}
	return true
}

const processProfile = "$process_person_profile"

var trueValue, falseValue = record.Value("true"), record.Value("false")

// v1Options are the options of an event, and the properties that they become.
var v1Options = []struct{ name, property string }{
	{"cookieless_mode", cookielessMode},
	{"disable_skew_correction", ignoreSentAt},
	{"process_person_profile", processProfile},
	{"product_tour_id", "$product_tour_id"},
}

// addOptions turns the options into properties. It reports whether they are valid; it ignores unknown ones.
func (b *v1Batch) addOptions(given record.Value) bool {
	if given == nil || given.IsNull() {
		return true
	}
	if given[0] != '{' {
		return false
	}
	options := given.Object()
	for _, option := range v1Options {
		v := options.Get(option.name)
		if v == nil || v.IsNull() || isBlank(v) {
			continue
		}
		read := boolOption
		if option.name == "product_tour_id" {
			read = textOption
		}
		if v = read(v); v == nil {
			return false
		}
		b.properties = b.properties.Set(option.property, v)
	}
	return true
}

// isBlank reports whether an option is a text without content, which counts as not given.
func isBlank(v record.Value) bool {
	text, ok := stringOf(v)
	return ok && strings.TrimSpace(text) == ""
}

// boolOption reads a boolean, which may be a word or a number; nil if it is not one.
func boolOption(v record.Value) record.Value {
	if isBool(v) {
		return v
	}
	number := string(v)
	if text, ok := stringOf(v); ok {
		switch number = strings.ToLower(strings.TrimSpace(text)); number {
		case "true", "t", "yes", "y", "on":
			return trueValue
		case "false", "f", "no", "n", "off":
			return falseValue
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsRune(number, 'x'): // no hexadecimal numbers
		return nil
	case f == 0:
		return falseValue
	}
	return trueValue
}

// textOption reads a text, which may be a whole number; nil if it is not one.
func textOption(v record.Value) record.Value {
	if v[0] == '"' {
		return v
	}
	if text, ok := v.Text(); ok && !strings.ContainsAny(text, ".eE") {
		return record.TextValue(text)
	}
	return nil
}
