package clickhouse

// Restarter is a Sink that can start over. If the host of a query dies, the query is repeated on another host, however many rows have arrived.
type Restarter interface {
	Sink
	// Restart drops the columns and rows received so far. It reports whether it could.
	Restart() bool
}

// heldBytes is how many bytes of rows are held back while their query may have to be repeated on another host.
const heldBytes = 64 << 10

// held holds back the beginning of a result, so that the query can be repeated until more than heldBytes have arrived. A Restarter gets everything at
// once.
type held struct {
	to      Sink
	again   func() bool // restarts to; nil if it can't
	passed  bool        // to has received something
	any     bool        // the columns have arrived
	columns []Column
	rows    []byte
	ends    []int // of the rows in rows
}

// Columns keeps the columns.
func (h *held) Columns(columns []Column) error {
	h.columns, h.any = columns, true
	if h.again != nil {
		return h.flush()
	}
	return nil
}

// Row keeps a row, or passes it on after the rows kept before it.
func (h *held) Row(json []byte) error {
	if !h.passed && len(h.rows)+len(json) <= heldBytes {
		h.rows = append(h.rows, json...)
		h.ends = append(h.ends, len(h.rows))
		return nil
	}
	if err := h.flush(); err != nil {
		return err
	}
	return h.to.Row(json)
}

// flush passes on what was kept.
func (h *held) flush() error {
	if h.passed || !h.any {
		return nil
	}
	h.passed = true
	if err := h.to.Columns(h.columns); err != nil {
		return err
	}
	start := 0
	for _, end := range h.ends {
		if err := h.to.Row(h.rows[start:end]); err != nil {
			return err
		}
		start = end
	}
	h.rows, h.ends = nil, nil
	return nil
}

// restart drops what has arrived. It reports whether the result can start over.
func (h *held) restart() bool {
	if h.passed && (h.again == nil || !h.again()) {
		return false
	}
	h.passed, h.any, h.columns, h.rows, h.ends = false, false, nil, h.rows[:0], h.ends[:0]
	return true
}
