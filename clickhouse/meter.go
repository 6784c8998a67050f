package clickhouse

import (
	"context"
	"net"
	"sync/atomic"
)

// meter counts the bytes that arrive for one query over the native protocol. The driver decodes a block only once all of it is in
// memory, so the bytes are counted on the connection.
type meter struct {
	all    atomic.Int64 // bytes that may still arrive
	unseen atomic.Int64 // bytes that may arrive before the sink begins or ends to take a row; rows come in blocks
	most   int64        // the initial value of unseen
	over   atomic.Bool
}

type meterKey struct{}

// aheadBytes is how many bytes may arrive while the sink takes a row, and how many before it gets the next one. The sink may wait for a slow client, and
// meanwhile two blocks arrive: the driver keeps one in its buffer, and one for which the buffer has no room. So a block may have half of it.
const aheadBytes = 2 * MaxRowBytes

// metered returns a context whose query is metered, and a sink that reports rows to the meter.
func metered(ctx context.Context, most bounds, sink Sink) (context.Context, Sink) {
	m := &meter{most: min(most.all, aheadBytes)}
	m.all.Store(most.all)
	m.unseen.Store(m.most)
	return context.WithValue(ctx, meterKey{}, m), &meteredSink{sink, m, most}
}

// count counts n bytes that arrived. It returns an error if there were too many.
func (m *meter) count(n int) error {
	if m.all.Add(int64(-n)) < 0 || m.unseen.Add(int64(-n)) < 0 {
		m.over.Store(true)
		return errTooLarge
	}
	return nil
}

// spent reports whether the query was ended because too much arrived. It is false for a nil meter.
func (m *meter) spent() bool { return m != nil && m.over.Load() }

// meteredSink limits the rows made from blocks.
type meteredSink struct {
	Sink

	meter *meter
	left  bounds
}

func (s *meteredSink) Row(json []byte) error {
	s.meter.unseen.Store(s.meter.most)
	defer s.meter.unseen.Store(s.meter.most)
	if s.left.all -= int64(len(json)); s.left.all < 0 || int64(len(json)) > s.left.row {
		return errTooLarge
	}
	return s.Sink.Row(json)
}

// meteredConn is a slot's connection. The meter of the slot's query counts what arrives.
type meteredConn struct {
	net.Conn

	slot *slot
}

func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if m := c.slot.meter.Load(); m != nil {
		if over := m.count(n); over != nil {
			return 0, over
		}
	}
	return n, err
}
