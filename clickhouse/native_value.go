package clickhouse

import (
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"github.com/caddy-analytics/caddy-analytics/internal/chjson"
)

// orderedMap scans a Map column and keeps the order of its entries.
type orderedMap struct{ keys, values []any }

// Put is called by the driver for each entry.
func (m *orderedMap) Put(key, value any) {
	m.keys = append(m.keys, key)
	m.values = append(m.values, value)
}

// Iterator completes the driver's interface, which scanning does not use.
func (m *orderedMap) Iterator() column.MapIterator { panic("BUG: a scanned map is only written") }

func (m *orderedMap) reset() { m.keys, m.values = m.keys[:0], m.values[:0] }

func (m *orderedMap) append(b []byte, t chType) (_ []byte, err error) {
	b = append(b, '{')
	for i, key := range m.keys {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendKey(b, t.args[0], key); err != nil {
			return b, err
		}
		b = append(b, ':')
		if b, err = appendValue(b, t.args[1], m.values[i]); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// appendKey appends a map's key, which must be a string in JSON.
func appendKey(b []byte, t chType, key any) ([]byte, error) {
	start := len(b)
	b, err := appendValue(b, t, key)
	if err != nil || len(b) > start && b[start] == '"' {
		return b, err
	}
	b = append(b, '"', '"')
	copy(b[start+1:], b[start:len(b)-2])
	b[start] = '"'
	return b, nil
}

// appendValue appends a value in an array, tuple or map, which the driver returns as a Go value.
func appendValue(b []byte, t chType, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...), nil
	case string:
		return chjson.AppendString(b, v), nil
	case time.Time:
		if t.location == nil {
			return appendDate(b, v), nil
		}
		return appendDriverTime(b, t, v), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case float64:
		return appendFloat(b, v, 64), nil
	case float32:
		return appendFloat(b, float64(v), 32), nil
	case uuid.UUID:
		return chjson.AppendString(b, v.String()), nil
	case decimal.Decimal:
		return chjson.AppendString(b, v.String()), nil
	case big.Int:
		return v.Append(b, 10), nil
	case *big.Int:
		if v == nil {
			return append(b, "null"...), nil
		}
		return v.Append(b, 10), nil
	case net.IP:
		address, _ := netip.AddrFromSlice(v)
		if t.name == "IPv4" {
			address = address.Unmap()
		}
		return chjson.AppendString(b, address.String()), nil
	}
	return appendReflected(b, t, reflect.ValueOf(value))
}

func appendReflected(b []byte, t chType, v reflect.Value) ([]byte, error) {
	switch v.Kind() { //nolint:exhaustive // the driver returns no others for easy types
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return appendValue(b, t, v.Elem().Interface())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case reflect.Slice:
		return appendList(b, t, v)
	}
	return b, fmt.Errorf("BUG: the driver returned a %s for %s", v.Type(), t.name)
}

// appendList appends the items of an array, or the elements of a tuple.
func appendList(b []byte, t chType, v reflect.Value) (_ []byte, err error) {
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		item := &t.args[0]
		if t.name == "Tuple" {
			item = &t.args[i]
		}
		if b, err = appendValue(b, *item, v.Index(i).Interface()); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}
