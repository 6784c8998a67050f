package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/memory"
)

// perByte is how many bytes of memory a byte of a body takes: it is in a buffer that has grown, and again in what is decoded from it.
const perByte = 3

// lentBody is the body of a request that may be large. What lies beyond the size of usual ones is lent to the request, and has to arrive in time.
type lentBody struct {
	io.ReadCloser

	ctx     context.Context //nolint:containedctx // that of the request
	control *http.ResponseController
	loan    *memory.Loan
	free    int // bytes that are not lent, or lent already
	large   bool
}

// lendBody has a loan pay for the body of a request.
func lendBody(w http.ResponseWriter, r *http.Request, loan *memory.Loan) {
	if r.Body != nil {
		r.Body = &lentBody{ReadCloser: r.Body, ctx: r.Context(), control: http.NewResponseController(w), loan: loan, free: memory.Large}
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
	return n, err //nolint:wrapcheck // io.Reader: callers compare the error
}

// StreamBody says that the handler does not keep the body in memory: no memory is lent for the rest of it, and it may take any time.
func (in *Input) StreamBody() {
	if lent, ok := in.Body.(*lentBody); ok {
		in.Body = lent.ReadCloser
	}
}

// lend takes memory for the next part.
func (b *lentBody) lend() error {
	if !b.large { // nothing can be done if the connection supports no deadlines
		_ = b.control.SetReadDeadline(memory.Deadline(time.Now(), maxBody))
		b.large = true
	}
	if err := b.loan.Take(b.ctx, perByte*memory.Large); err != nil {
		return err //nolint:wrapcheck // BodyError looks at it
	}
	b.free = memory.Large
	return nil
}
