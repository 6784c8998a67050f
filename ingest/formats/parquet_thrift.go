package formats

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

const (
	maxDepth = 64        // of nested lists and structures: the library skips unknown ones by recursion
	maxItems = 128 << 20 // approximate bytes that the items of all lists take in memory
	// The approximate size of an item in memory. The largest structure is a column of a row group, which takes 3 bytes in the file.
	structSize = 600
	itemSize   = 32
)

var (
	errDeep = errors.New("it has lists or structures that are nested too deeply")
	errList = errors.New("it has lists that are too long")
)

// decode reads a thrift structure, and returns its length in bytes.
func decode(text []byte, into any) (int, error) {
	var compact thrift.CompactProtocol
	s := scan{in: compact.NewReaderFromBytes(text), left: maxItems}
	if err := s.structure(0); err != nil {
		return 0, unexpected(err)
	}
	in := compact.NewReaderFromBytes(text)
	err := thrift.NewDecoder(in).Decode(into)
	return in.BytesRead(), err
}

// scan goes through thrift data before it is decoded, and refuses data that would take too much stack or memory.
type scan struct {
	in   thrift.Reader
	left int64 // bytes of memory that items may still take
}

// structure goes through the fields of a structure.
func (s *scan) structure(depth int) error {
	for {
		field, err := s.in.ReadField()
		if err != nil {
			return err
		}
		if field.Type == thrift.STOP {
			return nil
		}
		if field.Type == thrift.TRUE || field.Type == thrift.FALSE {
			continue // the type is the value
		}
		if err := s.value(field.Type, depth+1); err != nil {
			return err
		}
	}
}

// value goes through a value of a field, or an item.
func (s *scan) value(t thrift.Type, depth int) (err error) {
	if depth > maxDepth {
		return errDeep
	}
	switch t {
	case thrift.TRUE, thrift.FALSE:
		_, err = s.in.ReadBool()
	case thrift.I8:
		_, err = s.in.ReadInt8()
	case thrift.I16:
		_, err = s.in.ReadInt16()
	case thrift.I32:
		_, err = s.in.ReadInt32()
	case thrift.I64:
		_, err = s.in.ReadInt64()
	case thrift.DOUBLE:
		_, err = s.in.ReadFloat64()
	case thrift.UUID:
		_, err = s.in.ReadFloat64()
		if err == nil {
			_, err = s.in.ReadFloat64()
		}
	case thrift.BINARY:
		_, err = s.in.ReadBytes()
	case thrift.STRUCT:
		return s.structure(depth)
	case thrift.LIST, thrift.SET:
		var l thrift.List
		if l, err = s.in.ReadList(); err == nil {
			err = s.items(int(l.Size), depth, l.Type)
		}
	case thrift.MAP:
		var m thrift.Map
		if m, err = s.in.ReadMap(); err == nil {
			err = s.items(int(m.Size), depth, m.Key, m.Value)
		}
	default:
		return fmt.Errorf("it has a value of the type %d", t)
	}
	return err
}

// items goes through the items of a list, or the keys and values of a map.
func (s *scan) items(n, depth int, types ...thrift.Type) error {
	size := int64(0)
	for _, t := range types {
		if t == thrift.STRUCT {
			size += structSize
		} else {
			size += itemSize
		}
	}
	if s.left -= int64(n) * size; n < 0 || s.left < 0 {
		return errList
	}
	for range n {
		for _, t := range types {
			if err := s.value(t, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// unexpected turns io.EOF within a structure into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
