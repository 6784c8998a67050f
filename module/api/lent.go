package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/memory"
)

// perByte is how many bytes of memory a byte of a body takes: it is in a buffer that has grown, and again in what is decoded from it.
const perByte = 3

// lentBody is the body of a request that may be large. What lies beyond the size of usual ones is lent to the request, and has to arrive in time.
type lentBody struct {
	io.ReadCloser

	ctx     context.Context // that of the request
	control *http.ResponseController
	loan    *memory.Loan
	rest    int // bytes that are announced beyond those of usual requests; 0 if unknown
	free    int // bytes that are not lent, or lent already
	large   bool
}

// lendBody has a loan pay for the body of a request.
func lendBody(w http.ResponseWriter, r *http.Request, loan *memory.Loan) {
	if r.Body != nil {
		rest := int(min(r.ContentLength, maxBody)) - memory.Large
		r.Body = &lentBody{
			ReadCloser: r.Body, ctx: r.Context(), control: http.NewResponseController(w), loan: loan, rest: max(0, rest), free: memory.Large,
		}
	}
}

// Read reads a part of the body. The error may be one of [memory.Loan.Take].
func (b *lentBody) Read(into []byte) (int, error) {
	if b.free == 0 {
		if err := b.lend(); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(into[:min(len(into), b.free)])
	b.free -= n
	if b.large && errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err // io.Reader: callers compare the error
}

// StreamBody says that the handler does not keep the body in memory: no memory is lent for the rest of it, and it may take any time.
func (in *Input) StreamBody() {
	if lent, ok := in.Body.(*lentBody); ok {
		in.Body = lent.ReadCloser
	}
}

// lend takes memory for the next part. If the size is known, this is all the rest: of several bodies that arrive at once, some wait then, rather than all of
// them in the midst.
func (b *lentBody) lend() error {
	if !b.large { // nothing can be done if the connection supports no deadlines
		_ = b.control.SetReadDeadline(memory.Deadline(time.Now(), maxBody))
		b.large = true
	}
	next := memory.Large
	if b.rest > 0 {
		next, b.rest = b.rest, 0
	}
	if err := b.loan.Take(b.ctx, perByte*int64(next)); err != nil {
		return err // BodyError looks at it
	}
	b.free = next
	return nil
}

// Parts lends memory for a response that consists of several parts, which may be added concurrently.
type Parts struct {
	Loan *memory.Loan

	bytes atomic.Int64
}

// Add lends the bytes of a part, unless all parts together are no larger than usual responses. The error is a response.
func (p *Parts) Add(ctx context.Context, bytes int64) error {
	if p.bytes.Add(bytes) <= memory.Large {
		return nil
	}
	return MemoryError(p.Loan.Take(ctx, bytes))
}
