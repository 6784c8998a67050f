// Package capture reads what clients send to have events captured: it takes a request's bytes and headers, and yields the events as
// records, or says why not (contract capture.md, sections 1 to 7 and 11). It knows neither HTTP servers nor projects.
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

	// From the query string; empty where it does not say.
	Data        string // a payload in the place of the body
	Compression string
	SentAt      string // milliseconds of the epoch
	Token       string // for payloads that have none

	// Engage reports that a single event without a name is a $identify.
	Engage bool
	// IP is the client's address; empty when it is not known.
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
	// Return takes back some of what Take lent. What a request has at its end is for its caller to give back.
	Return(bytes int)
}

type endless struct{}

func (endless) Take(int) error { return nil }
func (endless) Return(int)     {}

// Batch is what a request brought.
type Batch struct {
	Token string // with which project's token it came; only its form was looked at
	// Lines are the events to store, each as record.Append writes it, with a line feed after it. All have a UUID.
	Lines  []byte
	Events int // how many lines there are
	// Ignored is how many events were accepted that are not stored.
	Ignored int
	// Results say what became of each event, in the order of the request. Only DecodeV1 fills them.
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

	// Of the newest route alone.
	InvalidHeader   Code = "invalid_header"
	InvalidBatch    Code = "invalid_batch"
	UnsupportedType Code = "unsupported_media_type"
)

// Codes are all codes of refusals.
var Codes = []Code{
	EmptyPayload, ParseError, EmptyBatch, MissingEventName, MissingDistinctID, InvalidEvent, MissingKey, InconsistentKeys, InvalidKey,
	TooLarge, InvalidHeader, InvalidBatch, UnsupportedType,
}

// RefusalError says why nothing of a request is taken.
type RefusalError struct {
	Code   Code
	Detail string
	Attr   string // the field; empty for none in particular
	Index  int    // which event it is about, from 0; -1 for none
	Token  string // if not empty: a token of no project is what refuses the request in the first place
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
	first  *RefusalError // of an event; what is wrong with the payload or its token comes before it

	clock              clock
	sentAt, ip         record.Value // as properties
	fields, properties record.Object
	next               uint16 // counts the events that got a UUID
}

// maxLines is how many bytes the lines of a request may have, whatever its limits.
const maxLines = 240 << 20

// lineRoom is what lines may have beyond twice the payload, in bytes.
const lineRoom = 1 << 20

func newDecoder(r *Request) *decoder {
	d := &decoder{Request: r, limits: r.Limits.withDefaults()}
	if d.Memory == nil {
		d.Memory = endless{}
	}
	d.lines = buffer{memory: d.Memory, most: min(2*d.limits.Batch+lineRoom, maxLines)}
	if r.IP != "" {
		d.ip = record.TextValue(r.IP)
	}
	d.clock.now = r.Now.UTC().Truncate(time.Microsecond)
	return d
}

// Decode reads a request of any route but the newest. All its events are taken, or none: the first bad one refuses the request, with
// a *RefusalError.
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

// parseError is a refusal of a payload that is no JSON; refusals and what Memory says stay as they are.
func (d *decoder) parseError(err error) error {
	if _, ok := errors.AsType[*RefusalError](err); ok {
		return err
	}
	if refused, ok := errors.AsType[*memoryError](err); ok {
		return refused.cause
	}
	return refuse(ParseError, "The payload cannot be read: %v.", err)
}

// begin prepares for the events of a text. Lines are a little larger, as a rule.
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

// event reads one event and writes it to the lines. It returns what ends the reading; what else is wrong with an event is kept in first.
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
		return nil //nolint:nilerr // it comes after another mistake
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

// tokensAt finds the tokens of an event that was passed over.
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

// write adds an event to the lines, unless it is of those that are not stored. size is how large it was.
func (d *decoder) write(r *record.Record, size int) error {
	if notStored[r.Event] {
		d.batch.Ignored++
		return nil
	}
	// A line separator takes twice as much when it is escaped; what is added is less than this.
	const added = 2 << 10
	if err := d.lines.reserve(2*size + len(r.Elements)*2 + added); err != nil {
		return err
	}
	d.lines.b = append(record.Append(d.lines.b, r), '\n')
	d.batch.Events++
	return nil
}

// notStored are the names of what is no analytics event.
var notStored = map[string]bool{
	"$performance_event": true, "$snapshot": true, "$snapshot_items": true, "$$heatmap": true, "$$client_ingestion_warning": true,
}
