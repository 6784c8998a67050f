package peers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Kind is the kind of an answer.
type Kind byte

// The kinds of answers.
const (
	Result  Kind = iota + 1 // the body is what was asked for
	Failure                 // the body is an error that the asking server would meet as well
	Decline                 // the asking server has to do it itself; the body says why, for logs
)

// Answer is the answer to a request.
type Answer struct {
	Kind Kind
	Body []byte
	// Rest follows the body, so that the two need not be joined before they are sent. It is not modified. The receiver gets both as the body.
	Rest []byte
}

func (a *Answer) size() int { return len(a.Body) + len(a.Rest) }

// Declined returns the answer that the asking server has to do it itself.
func Declined(why string) Answer { return Answer{Kind: Decline, Body: []byte(why)} }

// An answer is sent in frames:
//
//	what 1 | length 4, big endian | bytes
//
// There are signs of life without bytes, then the parts of the body, and finally the kind.
const (
	frameSign  byte = 's'
	framePart  byte = 'p'
	frameKind  byte = 'k' // its one byte is the Kind
	frameHead       = 5
	frameBytes      = 64 << 10 // at most, of a part
)

// writer sends an answer.
type writer struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func (w *writer) frame(what byte, data []byte) error {
	head := [frameHead]byte{what}
	binary.BigEndian.PutUint32(head[1:], uint32(len(data))) //nolint:gosec // at most frameBytes
	if err := w.rc.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	if _, err := w.w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.w.Write(data)
	return err
}

// sign tells the other server that the answer is being worked on.
func (w *writer) sign() error {
	if err := w.frame(frameSign, nil); err != nil {
		return err
	}
	return w.rc.Flush()
}

// answer sends an answer. If that fails, nobody is left to tell.
func (w *writer) answer(a Answer) {
	if a.size() > MaxAnswer {
		a = Declined("the answer is too large")
	}
	for _, rest := range [...][]byte{a.Body, a.Rest} {
		for len(rest) > 0 {
			part := rest[:min(len(rest), frameBytes)]
			if w.frame(framePart, part) != nil {
				return
			}
			rest = rest[len(part):]
		}
	}
	if w.frame(frameKind, []byte{byte(a.Kind)}) == nil {
		_ = w.rc.Flush()
	}
}

var errForm = errors.New("malformed answer")

// room bounds the total size of answers at a time.
type room struct {
	most int64
	held atomic.Int64
}

// take takes room for n bytes. It reports false if there is not enough.
func (r *room) take(n int) bool {
	if r.held.Add(int64(n)) > r.most {
		r.leave(n)
		return false
	}
	return true
}

func (r *room) leave(n int) { r.held.Add(-int64(n)) }

// read reads an answer of at most most bytes. It calls alive with each frame. An answer for which there is no room counts as declined.
func read(r io.Reader, most int, in *room, alive func()) (Answer, error) {
	var body []byte
	defer func() { in.leave(len(body)) }()
	var head [frameHead]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return Answer{}, fmt.Errorf("reading an answer: %w", err)
		}
		alive()
		length := int(binary.BigEndian.Uint32(head[1:]))
		switch what := head[0]; {
		case what == frameSign && length == 0:
		case what == framePart && length > 0 && length <= frameBytes:
			if length > most-len(body) {
				return Answer{}, fmt.Errorf("an answer of more than %d bytes", most)
			}
			if !in.take(length) {
				return Declined("there is no room for the answer"), nil
			}
			from := len(body)
			body = append(body, make([]byte, length)...)
			if _, err := io.ReadFull(r, body[from:]); err != nil {
				return Answer{}, fmt.Errorf("reading an answer: %w", err)
			}
		case what == frameKind && length == 1:
			var kind [1]byte
			if _, err := io.ReadFull(r, kind[:]); err != nil {
				return Answer{}, fmt.Errorf("reading an answer: %w", err)
			}
			if k := Kind(kind[0]); k >= Result && k <= Decline {
				return Answer{Kind: k, Body: body}, nil
			}
			return Answer{}, errForm
		default:
			return Answer{}, errForm
		}
	}
}
