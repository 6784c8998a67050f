package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/s2"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Intents keeps the batch that is being written into each project. An unfinished batch is written again before anything else, so that it changes people exactly
// once, wherever its writing broke off.
type Intents interface {
	// Save replaces the project's batch and returns when the new one would survive the end of the process. An empty batch says that there is none.
	Save(ctx context.Context, project int64, batch []byte) error
	// Load returns the project's last batch; nothing if there is none.
	Load(ctx context.Context, project int64) ([]byte, error)
}

// IntentForm is the form in which batches are kept, and the newest that can be read.
const IntentForm = 2

// A kept batch begins with the version of its form. The first version had no refusals.
const (
	intentVersion = IntentForm
	firstVersion  = 1
)

// intent is what is kept for a project: the batch that is being written, and the events that were refused.
type intent struct {
	blocks  []block
	refused *refusals
}

// encode returns the form in which an intent is kept; nothing for an empty one.
func (i intent) encode() []byte {
	if len(i.blocks)+len(i.refused.keys) == 0 {
		return nil
	}
	size := 0
	for _, b := range i.blocks {
		size += b.size() + len(b.rows)*(64+10*len(b.columns))
	}
	e := encoder{out: make([]byte, 0, size)}
	e.number(uint64(len(i.refused.keys)))
	for _, key := range i.refused.keys {
		e.text(key)
		e.text(i.refused.reasons[key])
	}
	e.blocks(i.blocks)
	kept := make([]byte, 1+s2.MaxEncodedLen(len(e.out)))
	kept[0] = intentVersion
	return kept[:1+len(s2.Encode(kept[1:], e.out))]
}

func (e *encoder) blocks(blocks []block) {
	e.number(uint64(len(blocks)))
	for _, b := range blocks {
		e.text(b.table)
		e.number(uint64(len(b.columns)))
		for _, name := range b.columns {
			e.text(name)
		}
		e.number(uint64(len(b.rows)))
		for _, row := range b.rows {
			e.text(row.key)
			for _, value := range row.values {
				e.value(value)
			}
		}
	}
}

// decodeIntent reads what encode wrote.
func decodeIntent(kept []byte) (intent, error) {
	out := intent{refused: newRefusals()}
	if len(kept) == 0 {
		return out, nil
	}
	version := kept[0]
	if version != intentVersion && version != firstVersion {
		return out, errors.New("it is of another version of the server")
	}
	in, err := s2.Decode(nil, kept[1:])
	if err != nil {
		return out, err
	}
	d := decoder{in: in}
	if version != firstVersion {
		for range d.count() {
			key := d.text()
			out.refused.add(key, d.text())
		}
		out.refused.changed = false
	}
	out.blocks = d.blocks()
	return out, d.err
}

func (d *decoder) blocks() []block {
	blocks := make([]block, d.count())
	for n := range blocks {
		b := &blocks[n]
		b.table = d.text()
		b.columns = make([]string, d.count())
		for i := range b.columns {
			b.columns[i] = d.text()
		}
		b.rows = make([]row, d.count())
		for i := range b.rows {
			b.rows[i] = row{key: d.text(), values: make([]any, len(b.columns))}
			for at := range b.columns {
				b.rows[i].values[at] = d.value()
			}
		}
	}
	return blocks
}

type encoder struct{ out []byte }

func (e *encoder) number(n uint64) { e.out = binary.AppendUvarint(e.out, n) }

func (e *encoder) text(s string) {
	e.number(uint64(len(s)))
	e.out = append(e.out, s...)
}

// value writes a value of a row, preceded by a letter for its type.
func (e *encoder) value(v any) {
	switch v := v.(type) {
	case string:
		e.out = append(e.out, 's')
		e.text(v)
	case uuid.UUID:
		e.out = append(append(e.out, 'u'), v[:]...)
	case time.Time:
		e.out = binary.AppendVarint(append(e.out, 't'), v.UnixMicro())
	case int8:
		e.out = append(e.out, 'i', byte(v)) //nolint:gosec // decoded back to an int8
	case uint8:
		e.out = append(e.out, 'b', v)
	case int64:
		e.out = binary.AppendVarint(append(e.out, 'I'), v)
	case uint64:
		e.out = binary.AppendUvarint(append(e.out, 'B'), v)
	default:
		panic(fmt.Sprintf("BUG: a row has a value of the type %T", v))
	}
}

var errIntent = errors.New("it is damaged")

// decoder reads what an encoder wrote. After the first error it yields zeros.
type decoder struct {
	in  []byte
	err error
}

func (d *decoder) take(n uint64) []byte {
	if d.err != nil || n > uint64(len(d.in)) {
		d.in, d.err = nil, errIntent
		return make([]byte, min(n, 16))
	}
	out := d.in[:n]
	d.in = d.in[n:]
	return out
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.in)
	d.take(sizeOf(size))
	return n
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.in)
	d.take(sizeOf(size))
	return n
}

// sizeOf returns the length of a number in bytes or, if the number could not be read, more than any input has.
func sizeOf(size int) uint64 {
	if size <= 0 {
		return math.MaxUint64
	}
	return uint64(size)
}

// count reads the number of things that follow, each at least a byte long.
func (d *decoder) count() uint64 {
	n := d.number()
	if n > uint64(len(d.in)) {
		d.in, d.err = nil, errIntent
		return 0
	}
	return n
}

func (d *decoder) text() string {
	n := d.count()
	return string(d.take(n))
}

func (d *decoder) value() any {
	switch d.take(1)[0] {
	case 's':
		return d.text()
	case 'u':
		return uuid.UUID(d.take(16))
	case 't':
		return time.UnixMicro(d.signed()).UTC()
	case 'i':
		return int8(d.take(1)[0]) //nolint:gosec // encoded from an int8
	case 'b':
		return d.take(1)[0]
	case 'I':
		return d.signed()
	case 'B':
		return d.number()
	}
	d.in, d.err = nil, errIntent
	return nil
}

// resume rewrites a batch that may be unfinished. Rows that are already there stay as they are.
func (s *session) resume(ctx context.Context) error {
	if s.intents == nil {
		return s.settle(ctx, false)
	}
	kept, err := s.intents.Load(ctx, s.options.Project)
	if err != nil {
		return fmt.Errorf("looking for an unfinished batch: %w", err)
	}
	unfinished, err := decodeIntent(kept)
	if err != nil {
		return fmt.Errorf("reading the unfinished batch of project %d: %w", s.options.Project, err)
	}
	s.refusals.take(unfinished.refused)
	if err := s.settle(ctx, len(unfinished.blocks) > 0); err != nil {
		return err
	}
	for _, b := range unfinished.blocks {
		if b.table == physical.Events {
			if err := s.store.dropKnown(ctx, &b); err != nil {
				return err
			}
		}
		s.restamp(&b)
		if err := s.insert(ctx, b); err != nil {
			return fmt.Errorf("completing an unfinished batch: %w", err)
		}
	}
	return s.keep(ctx, nil)
}

// restamp makes rows of an unfinished batch say that they are written now. Those of groups keep their time, which is their version.
func (s *session) restamp(b *block) {
	at := slices.Index(b.columns, "_timestamp")
	if at < 0 || b.table == "groups" {
		return
	}
	for _, row := range b.rows {
		row.values[at] = s.store.written
	}
}

// keep keeps the blocks that are about to be written, with the refusals.
func (s *session) keep(ctx context.Context, blocks []block) error {
	if err := s.intents.Save(ctx, s.options.Project, intent{blocks, s.refusals}.encode()); err != nil {
		return err
	}
	s.refusals.changed = false
	return nil
}

// dropKnown removes the events from a block that are already in ClickHouse.
func (s *store) dropKnown(ctx context.Context, b *block) error {
	place := map[string]int{}
	for n, name := range b.columns {
		place[name] = n
	}
	keys := make([]eventOfDay, len(b.rows))
	for n, row := range b.rows {
		id, _ := row.values[place["uuid"]].(uuid.UUID)
		name, _ := row.values[place["event"]].(string)
		person, _ := row.values[place["distinct_id"]].(string)
		at, _ := row.values[place["timestamp"]].(time.Time)
		keys[n] = eventOfDay{eventKey{id, name, person}, dayOf(at)}
	}
	known := knownEvents{}
	for some := range slices.Chunk(keys, maxAsked) {
		if err := s.lookUp(ctx, some, known); err != nil {
			return err
		}
	}
	kept := b.rows[:0]
	for n, row := range b.rows {
		if !known.has(keys[n].eventKey, keys[n].day) {
			kept = append(kept, row)
		}
	}
	b.rows = kept
	return nil
}
