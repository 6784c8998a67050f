// Package capture decodes the requests by which clients send events: from a request's bytes and headers it yields the events as records, or says why not
// (contract capture.md, sections 1 to 7 and 11). It knows neither HTTP servers nor projects.
package capture

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// Request is what a client sent.
type Request struct {
	Body            []byte
	ContentType     string
	ContentEncoding string

	// From the query string; empty if it does not have them.
	Data        string // a payload in place of the body
	Compression string
	SentAt      string // milliseconds of the epoch
	Token       string // for payloads that have none

	// Engage says that a single event without a name is a $identify.
	Engage bool
	// IP is the client's address; empty if it is not known.
	IP  string
	Now time.Time // when it arrived

	Limits Limits
	Memory Memory // nil: as much as the limits allow
}

// Limits bound a request, in bytes.
type Limits struct {
	Event int // one event as JSON; 0: DefaultEvent
	Batch int // the payload when it is decoded; 0: DefaultBatch
}

// Limits that hold unless others are set, in bytes.
const (
	DefaultEvent = 1 << 20
	DefaultBatch = 100 << 20
)

// AIEvent is how large an AI event may be at least, in bytes as JSON: SDKs send properties of up to 8 MiB.
const AIEvent = 8<<20 + 64<<10

func (l Limits) withDefaults() Limits {
	if l.Event == 0 {
		l.Event = DefaultEvent
	}
	if l.Batch == 0 {
		l.Batch = DefaultBatch
	}
	return l
}

// Memory lends memory to requests that are decoded at the same time.
type Memory interface {
	// Take lends bytes. Its error ends the decoding, which returns it.
	Take(bytes int) error
	// Return takes back some of what Take lent. The caller gives back what a request still has at its end.
	Return(bytes int)
}

type unlimitedMemory struct{}

func (unlimitedMemory) Take(int) error { return nil }
func (unlimitedMemory) Return(int)     {}

// Batch is what a request brought.
type Batch struct {
	Token string // the project's; only its form was checked
	// Lines holds the events to store, each as record.Append writes it, followed by a line feed. All have a UUID.
	Lines  []byte
	Events int // how many lines there are
	// Ignored counts events that were accepted but are not stored.
	Ignored int
	// Results holds the outcome of each event, in the order of the request. Only DecodeV1 fills it.
	Results []Result
}

// Code says why a request is refused.
type Code string

// The codes of refusals. They are a part of the API.
const (
	EmptyPayload      Code = "empty_payload"
	ParseError        Code = "parse_error"
	EmptyBatch        Code = "empty_batch"
	MissingEventName  Code = "missing_event_name"
	MissingDistinctID Code = "missing_distinct_id"
	InvalidEvent      Code = "invalid_event"
	MissingKey        Code = "missing_api_key"
	InconsistentKeys  Code = "inconsistent_api_keys"
	InvalidKey        Code = "invalid_api_key"
	TooLarge          Code = "payload_too_large"

	// Only of the newest route.
	InvalidHeader   Code = "invalid_header"
	InvalidBatch    Code = "invalid_batch"
	UnsupportedType Code = "unsupported_media_type"
)

// Codes lists all codes of refusals.
var Codes = []Code{
	EmptyPayload, ParseError, EmptyBatch, MissingEventName, MissingDistinctID, InvalidEvent, MissingKey, InconsistentKeys, InvalidKey,
	TooLarge, InvalidHeader, InvalidBatch, UnsupportedType,
}

// RefusalError says why a request is refused as a whole.
type RefusalError struct {
	Code   Code
	Detail string
	Attr   string // the field; empty for none in particular
	Index  int    // index of the event that it is about, from 0; -1 for none
	Token  string // if not empty, the token of the request: if no project has it, that is reported instead
}

func (e *RefusalError) Error() string { return string(e.Code) + ": " + e.Detail }

// refuse refuses a request as a whole.
func refuse(code Code, format string, args ...any) *RefusalError {
	return &RefusalError{Code: code, Detail: fmt.Sprintf(format, args...), Index: -1}
}

// decoder reads the events of one payload.
type decoder struct {
	*Request

	in     *record.Reader
	limits Limits
	batch  Batch
	lines  buffer
	keys   tokens
	first  *RefusalError // about an event; mistakes in the payload or its token take precedence

	clock              clock
	sentAt, ip         record.Value // as properties
	fields, properties record.Object
	next               uint16 // counts the events that were given a UUID
}

// maxLines is how many bytes the lines of a request may have, whatever its limits.
const maxLines = 240 << 20

// lineRoom is how many bytes lines may have beyond twice the payload.
const lineRoom = 1 << 20

func newDecoder(r *Request) *decoder {
	d := &decoder{Request: r, limits: r.Limits.withDefaults()}
	if d.Memory == nil {
		d.Memory = unlimitedMemory{}
	}
	d.lines = buffer{memory: d.Memory, most: min(2*d.limits.Batch+lineRoom, maxLines)}
	if r.IP != "" {
		d.ip = record.TextValue(r.IP)
	}
	d.clock.now = r.Now.UTC().Truncate(time.Microsecond)
	return d
}

// Decode reads a request of any route but the newest. It takes all events or none: the first bad one refuses the request, with a *RefusalError.
func Decode(r *Request) (*Batch, error) {
	d := newDecoder(r)
	text, err := d.payload()
	if err != nil {
		return nil, err
	}
	form, err := d.open(text)
	if err != nil {
		return nil, err
	}
	d.clock.setSentAt(form.sentAt, r.SentAt)
	if err := d.readEvents(text, form); err != nil {
		return nil, err
	}
	if form.kind == batchForm {
		d.keys.set(form.token)
	}
	if d.batch.Token, err = d.keys.token(r.Token); err != nil {
		return nil, err
	}
	if d.first != nil {
		d.first.Token = d.batch.Token
		return nil, d.first
	}
	d.batch.Lines = d.lines.b
	return &d.batch, nil
}

// each reads the events of a list.
func (d *decoder) each(one func(index int) error) error {
	index := 0
	err := d.in.Items(func() error {
		if d.in.Kind() != '{' {
			return refuse(ParseError, "The item at index %d of the batch is not an event, which is a JSON object.", index)
		}
		index++
		return one(index - 1)
	})
	switch {
	case err != nil:
		return d.parseError(err)
	case index == 0:
		return refuse(EmptyBatch, "The batch has no events.")
	}
	return nil
}

// parseError refuses a payload that is not JSON; it returns refusals and errors of Memory as they are.
func (d *decoder) parseError(err error) error {
	if _, ok := errors.AsType[*RefusalError](err); ok {
		return err
	}
	if refused, ok := errors.AsType[*memoryError](err); ok {
		return refused.cause
	}
	return refuse(ParseError, "The payload cannot be read: %v.", err)
}

// begin prepares to read the events of a text. Their lines are usually a little larger.
func (d *decoder) begin(text []byte) error {
	d.in, d.sentAt = record.NewReader(text), d.clock.sentAtValue()
	return d.lines.reserve(min(len(text)+len(text)/4+4<<10, d.lines.most))
}

// readEvents reads all events, so that a mistake in the JSON is found wherever it is.
func (d *decoder) readEvents(text []byte, form form) error {
	if err := d.begin(text); err != nil {
		return d.parseError(err)
	}
	if form.kind == oneForm {
		if err := d.event(0, form.kind); err != nil {
			return d.parseError(err)
		}
		return nil
	}
	d.in.Seek(form.start)
	return d.each(func(index int) error { return d.event(index, form.kind) })
}

// event reads one event and writes it to the lines. It returns an error that ends the reading; any other mistake in the event is kept in first.
func (d *decoder) event(index int, kind formKind) error {
	var err error
	start := d.in.Pos()
	d.fields, d.properties, err = d.in.Event(d.fields, d.properties, d.limits.Event)
	if errors.Is(err, record.ErrLong) {
		return &RefusalError{Code: TooLarge, Index: index, Detail: fmt.Sprintf("The event at index %d is larger than %d bytes.", index, d.limits.Event)}
	}
	bound, isBound := errors.AsType[*record.BoundError](err)
	if err != nil && !isBound {
		return err
	}
	if isBound {
		d.fields, d.properties = d.tokensAt(start)
	}
	size := d.in.Pos() - start
	if kind != batchForm {
		d.keys.of(d.fields, d.properties)
	}
	if d.first != nil {
		return nil //nolint:nilerr // an earlier mistake is reported
	}
	var r record.Record
	if isBound {
		d.first = &RefusalError{Code: InvalidEvent, Detail: fmt.Sprintf("cannot be stored: %v.", bound)}
	} else {
		d.first = d.fill(&r, kind == oneForm && d.Engage)
	}
	if d.first != nil {
		d.first.Index = index
		d.first.Detail = fmt.Sprintf("The event at index %d %s", index, d.first.Detail)
		return nil //nolint:nilerr // it is kept in first
	}
	return d.write(&r, size)
}

// tokensAt finds the tokens of an event that was skipped.
func (d *decoder) tokensAt(start int) (fields, properties record.Object) {
	for _, name := range tokenFields {
		if value := d.in.Field(start, name); value != nil {
			fields = append(fields, record.Member{Key: name, Value: value})
		}
	}
	if value := d.in.Field(start, propertiesField, "token"); value != nil {
		properties = record.Object{{Key: "token", Value: value}}
	}
	return fields, properties
}

// write adds an event to the lines, unless it is not stored. Events of the cookieless mode are not, as in a project of PostHog that does not use it: their
// visitors would all become one person. size is the event's size in the request.
func (d *decoder) write(r *record.Record, size int) error {
	if notStored[r.Event] || isCookieless(r.Properties) {
		d.batch.Ignored++
		return nil
	}
	// A line separator takes twice as much when it is escaped; what is added takes less than this.
	const added = 2 << 10
	if err := d.lines.reserve(2*size + len(r.Elements)*2 + added); err != nil {
		return err
	}
	d.lines.b = append(record.Append(d.lines.b, r), '\n')
	d.batch.Events++
	return nil
}

// notStored holds the names of events that are not analytics events.
var notStored = map[string]bool{
	"$performance_event": true, "$snapshot": true, "$snapshot_items": true, "$$heatmap": true, "$$client_ingestion_warning": true,
}
