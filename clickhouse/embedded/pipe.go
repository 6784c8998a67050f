//go:build linux || darwin

package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// pipeBuffer is the size of the buffer that copies a piped result.
const pipeBuffer = 128 << 10

// pipe sends a result in any format while the query runs. The engine writes to a file that is the write end of a pipe, opened by
// its descriptor. It blocks while the client is slow.
func (s *server) pipe(c *conn, q *query, st statement, out *answer) (err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("creating a pipe for the result: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	out.ask = func() progress { return s.account(q.mark) }
	var (
		sent    int64
		sending error
		passed  = make(chan struct{})
	)
	go func() {
		defer close(passed)
		buf := make([]byte, pipeBuffer)
		if sent, sending = io.CopyBuffer(onlyWriter{out}, onlyReader{r}, buf); sending != nil {
			// The engine may be blocked in a write. Let it finish that, so that it notices the stop.
			q.cancel()
			_, _ = io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{r}, buf) // ends with the query
		}
	}()
	result, err := c.query(st.into(q.text, w.Fd(), q.format), "Null", q.params)
	err = errors.Join(err, w.Close())
	<-passed
	out.ask = nil
	if err != nil {
		return err
	}
	defer result.free()
	out.progress = progress{}
	out.progress.count(result)
	out.progress.resultBytes = uint64(sent) //nolint:gosec // a count
	return sending
}

// onlyReader and onlyWriter hide other ways to copy, so that io.CopyBuffer uses the buffer.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// account returns the progress of the running query with this mark.
func (s *server) account(mark string) (p progress) {
	s.control.Lock()
	defer s.control.Unlock()
	if s.control.conn == nil {
		return p
	}
	text, err := s.control.conn.text("SELECT read_rows, read_bytes FROM system.processes WHERE "+byMark, "TSV", param{"mark", mark})
	if err == nil { // otherwise the summary is zero, like that of a server that has counted nothing yet
		_, _ = fmt.Fscan(strings.NewReader(text), &p.readRows, &p.readBytes)
	}
	return p
}
