package clickhouse

import (
	"context"
	"net"
	"sync/atomic"
)

// meter counts what arrives for one query over the native protocol. The driver takes a block apart only when all of it is in memory,
// so that bytes are counted before it, on the connection.
type meter struct {
	all    atomic.Int64 // bytes that may still arrive
	unseen atomic.Int64 // of those, bytes that may arrive before the next row is taken: rows come in blocks
	most   int64        // what unseen begins with
	over   atomic.Bool
}

type meterKey struct{}

// metered gives a context whose query is counted, and a sink that tells the meter of rows that were taken.
func metered(ctx context.Context, most bounds, sink Sink) (context.Context, Sink) {
	m := &meter{most: most.row}
	m.all.Store(most.all)
	m.unseen.Store(m.most)
	return context.WithValue(ctx, meterKey{}, m), &meteredSink{sink, m, most}
}

// count takes n bytes that arrived, and reports whether they were too many.
func (m *meter) count(n int) error {
	if m.all.Add(int64(-n)) < 0 || m.unseen.Add(int64(-n)) < 0 {
		m.over.Store(true)
		return errTooLarge
	}
	return nil
}

// spent reports whether the query was ended because too much arrived. A nil meter is never spent.
func (m *meter) spent() bool { return m != nil && m.over.Load() }

// meteredSink bounds the rows that are made from blocks.
type meteredSink struct {
	Sink

	meter *meter
	left  bounds
}

func (s *meteredSink) Row(json []byte) error {
	s.meter.unseen.Store(s.meter.most)
	if s.left.all -= int64(len(json)); s.left.all < 0 || int64(len(json)) > s.left.row {
		return errTooLarge
	}
	return s.Sink.Row(json)
}

// meteredConn is a connection of a slot, whose query's meter counts what arrives.
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
