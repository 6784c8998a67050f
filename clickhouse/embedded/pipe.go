//go:build linux || darwin

package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// pipeBuffer is how much of a piped result is passed on at once.
const pipeBuffer = 128 << 10

// pipe sends a result of any format while the query runs. The engine believes that it writes a file: the write end of a pipe,
// which it opens by its descriptor. It waits while the client is slow.
func (s *server) pipe(c *conn, q *query, st statement, out *answer) (err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe for the result: %w", err)
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
			// The engine may be in the midst of a write: it gets rid of that, and finds that it was stopped.
			q.cancel()
			_, _ = io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{r}, buf) // ends with the query
		}
	}()
	result, err := c.query(q.mark+st.into(q.text, w.Fd(), q.format), "Null", q.params)
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

// onlyReader and onlyWriter hide other ways to copy: what is passed on goes through the buffer, and is bounded by it.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// account is what the running query with this mark has done so far.
func (s *server) account(mark string) (p progress) {
	s.control.Lock()
	defer s.control.Unlock()
	if s.control.conn == nil {
		return p
	}
	text, err := s.control.conn.text("SELECT read_rows, read_bytes FROM system.processes WHERE startsWith(query, {mark:String})", "TSV", param{"mark", mark})
	if err == nil { // without an account the summary says zero, as a server's does that has counted nothing yet
		_, _ = fmt.Fscan(strings.NewReader(text), &p.readRows, &p.readBytes)
	}
	return p
}
