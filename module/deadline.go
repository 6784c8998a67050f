package module

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// How long the other side may take. Caddy has no such limits unless a server sets them: see docs/operations.md.
var (
	// bodyPause is how long a request body may pause; bodyTime is how long the whole of it may take.
	bodyPause = 30 * time.Second
	bodyTime  = 5 * time.Minute
	// importPause is how long an import may pause. The whole takes as long as its file.
	importPause = 2 * time.Minute
	// unreadTime is how long the server waits for the rest of a body that nobody reads.
	unreadTime = 5 * time.Second
	// sendTimeout is how long a client may take for a piece of an answer: one that nobody reads keeps its place no longer.
	sendTimeout = 2 * time.Minute
)

// sendSize is how large a piece is of those answers that are sent in pieces; smaller answers go as they are.
const sendSize = 256 << 10

// patientBody is a request body that fails when it stalls. A deadline is set before each read and taken away at the end, so
// that it counts neither the time of the handler nor that of the next request.
type patientBody struct {
	io.ReadCloser

	control *http.ResponseController
	pause   time.Duration
	end     time.Time // of the whole body; zero: whenever
	done    bool
	stalled bool
}

// bePatient gives a request a body that fails when it stalls; nil when there is no body, or the server has a time limit of its own.
func bePatient(w http.ResponseWriter, r *http.Request, pause, whole time.Duration) *patientBody {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	if server, _ := r.Context().Value(http.ServerContextKey).(*http.Server); server != nil && server.ReadTimeout > 0 && whole > 0 {
		return nil
	}
	b := &patientBody{ReadCloser: r.Body, control: http.NewResponseController(w), pause: pause}
	if whole > 0 {
		b.end = time.Now().Add(whole)
	}
	r.Body = b
	return b
}

// Read reads a part of the body, or fails when none comes.
func (b *patientBody) Read(into []byte) (int, error) {
	until := time.Now().Add(b.pause)
	if !b.end.IsZero() && until.After(b.end) {
		until = b.end
	}
	b.deadline(until)
	n, err := b.ReadCloser.Read(into)
	switch {
	case errors.Is(err, io.EOF):
		b.finish()
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.stalled = true
	}
	return n, err //nolint:wrapcheck // readers compare it
}

// deadline sets when reading fails, where the connection can: without it, the connection's own time limits hold.
func (b *patientBody) deadline(at time.Time) { _ = b.control.SetReadDeadline(at) }

func (b *patientBody) finish() {
	b.done = true
	b.deadline(time.Time{})
}

// leave bounds the time in which the server looks for the rest of a body that was not read. It may be nil.
func (b *patientBody) leave() {
	if b != nil && !b.done && !b.stalled {
		b.deadline(time.Now().Add(unreadTime))
	}
}

// failed reports whether the body stalled. It may be nil.
func (b *patientBody) failed() bool { return b != nil && b.stalled }

// errStalled is the answer to a body that stalls.
func errStalled() *apiError {
	return &apiError{
		Status: http.StatusRequestTimeout, Type: "invalid_request", Code: "request_timeout",
		Detail: "The request body did not arrive in time.", Header: map[string]string{"Connection": "close"},
	}
}

// send writes the body of an answer. A large one goes in pieces, so that a client that reads slowly has time and one that does not
// read is left. There is nobody to tell of a client that is gone.
func send(w http.ResponseWriter, body []byte) {
	if len(body) <= sendSize {
		_, _ = w.Write(body)
		return
	}
	control := http.NewResponseController(w)
	for len(body) > 0 {
		piece := body[:min(len(body), sendSize)]
		_ = control.SetWriteDeadline(time.Now().Add(sendTimeout)) // without one, the connection's own time limits hold
		if _, err := w.Write(piece); err != nil {
			return
		}
		body = body[len(piece):]
	}
	if control.Flush() == nil { // what is sent later has no deadline
		_ = control.SetWriteDeadline(time.Time{})
	}
}
