package admin

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// On sites, Caddy itself closes connections on which a request body or an answer stalls (read_idle_timeout and write_idle_timeout of a server, a
// minute each). Its admin server has no such limits, so an import brings its own.

// importPause is how long the body of an import may pause. The whole import takes as long as its file.
const importPause = 2 * time.Minute

// stallLimitedBody is a request body that fails when it stalls. It sets a deadline before each read and removes it at the end, so that neither the
// handler's own time nor that of the next request counts.
type stallLimitedBody struct {
	io.ReadCloser

	control *http.ResponseController
	pause   time.Duration
}

// limitStalls gives a request a body that fails after a pause.
func limitStalls(w http.ResponseWriter, r *http.Request, pause time.Duration) {
	r.Body = &stallLimitedBody{ReadCloser: r.Body, control: http.NewResponseController(w), pause: pause}
}

// Read reads a part of the body, or fails with os.ErrDeadlineExceeded if none comes.
func (b *stallLimitedBody) Read(into []byte) (int, error) {
	b.deadline(time.Now().Add(b.pause))
	n, err := b.ReadCloser.Read(into)
	if errors.Is(err, io.EOF) {
		b.deadline(time.Time{})
	}
	return n, err // io.Reader: callers compare the error
}

// deadline sets when reading fails, if the connection supports that; otherwise the connection's own time limits apply.
func (b *stallLimitedBody) deadline(at time.Time) { _ = b.control.SetReadDeadline(at) }
