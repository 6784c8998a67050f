package block

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// texts are strings. Types that hold strings in other forms are sent as String too.
type texts struct {
	next string
	out  []byte
}

func (c *texts) read(value any) (ok bool) {
	c.next, ok = value.(string)
	return ok
}

func (c *texts) add()           { c.out = appendText(c.out, c.next) }
func (c *texts) sentAs() string { return "String" }

func (c *texts) bytes(int) int { return len(c.out) }

func (c *texts) write(out []byte, _ int) []byte { return append(out, c.out...) }

// jsonTexts are JSON values as text.
type jsonTexts struct {
	texts

	typ string
}

// textVersion is the version of the encoding of a JSON column as text.
const textVersion = 1

func (c *jsonTexts) sentAs() string { return c.typ }

func (c *jsonTexts) write(out []byte, _ int) []byte {
	return append(binary.LittleEndian.AppendUint64(out, textVersion), c.out...)
}

// fixed are values of a fixed size.
type fixed struct {
	typ string
	out []byte
}

func (c *fixed) sentAs() string                 { return c.typ }
func (c *fixed) bytes(int) int                  { return len(c.out) }
func (c *fixed) write(out []byte, _ int) []byte { return append(out, c.out...) }

// numbers are integers. Their Go type must match the column's type.
type numbers struct {
	fixed

	next uint64
	size int
}

func (c *numbers) read(value any) bool {
	typ := ""
	switch v := value.(type) {
	case int64:
		typ, c.next, c.size = "Int64", uint64(v), 8 //nolint:gosec // the same bits
	case uint64:
		typ, c.next, c.size = "UInt64", v, 8
	case int8:
		typ, c.next, c.size = "Int8", uint64(uint8(v)), 1 //nolint:gosec // the same bits
	case uint8:
		typ, c.next, c.size = "UInt8", uint64(v), 1
	}
	return typ == c.typ
}

func (c *numbers) add() {
	if c.size == 1 {
		c.out = append(c.out, byte(c.next)) //nolint:gosec // it came from one byte
		return
	}
	c.out = binary.LittleEndian.AppendUint64(c.out, c.next)
}

// times are microseconds.
type times struct {
	fixed

	next int64
}

func (c *times) read(value any) bool {
	t, ok := value.(time.Time)
	c.next = t.UnixMicro()
	return ok
}

func (c *times) add() { c.out = binary.LittleEndian.AppendUint64(c.out, uint64(c.next)) } //nolint:gosec // the same bits

type uuids struct {
	next uuid.UUID
	out  []byte
}

func (c *uuids) read(value any) (ok bool) {
	c.next, ok = value.(uuid.UUID)
	return ok
}

func (c *uuids) sentAs() string { return "UUID" }

// add appends the two halves, each in little-endian order.
func (c *uuids) add() {
	c.out = binary.LittleEndian.AppendUint64(c.out, binary.BigEndian.Uint64(c.next[:8]))
	c.out = binary.LittleEndian.AppendUint64(c.out, binary.BigEndian.Uint64(c.next[8:]))
}

func (c *uuids) bytes(int) int { return len(c.out) }

func (c *uuids) write(out []byte, _ int) []byte { return append(out, c.out...) }
