package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

// FileFormat is a file format that ClickHouse itself writes.
type FileFormat string

// The file formats.
const (
	Parquet FileFormat = "Parquet"
	Arrow   FileFormat = "ArrowStream"
)

// endMarks are the bytes at the end of a complete file.
var endMarks = map[FileFormat][]byte{
	Parquet: []byte("PAR1"),
	Arrow:   {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
}

// ErrNoFiles is returned for a server with the native protocol, which cannot send files.
var ErrNoFiles = errors.New("files need ClickHouse's HTTP interface")

// Export runs a SELECT and writes its result to w as a file, while it arrives. Like Query, it returns nil only for a complete
// file; after an error, what w received is unusable.
//
// Errors of the query and of the server are *Error; ErrNoFiles and errors of w or ctx are returned wrapped.
func (c *Client) Export(ctx context.Context, q Query, format FileFormat, w io.Writer) (stats Stats, err error) {
	began := time.Now()
	if q.Project <= 0 {
		return stats, fmt.Errorf("BUG: a query without a project: %d", q.Project)
	}
	if err := checkText(q.SQL); err != nil {
		return stats, fmt.Errorf("BUG: a query whose text is not the compiler's: %w", err)
	}
	if c.hosts[0].native != nil {
		return stats, fmt.Errorf("writing %s: %w", format, ErrNoFiles)
	}
	ctx, cancel := c.withinLimit(ctx, q)
	defer cancel()
	if q.ID == "" {
		q.ID = uuid.NewString() // needed to stop it
	}
	out := &endWatcher{w: w}
	defer func() { stats.Elapsed = time.Since(began) }()
	hosts := c.hostsOf(&q)
	err = c.tryEach(ctx, hosts, func(error) bool { return !out.begun }, func(ctx context.Context, h *host) error {
		s, err := c.server(ctx, h)
		if err != nil {
			return err
		}
		q := q.sentTo(h != hosts[0])
		exchange := &exchange{format: string(format), params: encodeParams(q.Params), queryID: q.ID}
		defer func() { exchange.report(&stats) }()
		err = exportHTTP(context.WithValue(ctx, exchangeKey{}, exchange), h, c.settings(ctx, s, q), q.SQL, format, out)
		c.stop(ctx, h, q.ID, err)
		c.linger(ctx, h, q, err)
		if out.err != nil {
			return nil // w failed, not the host
		}
		return err
	})
	if out.err != nil {
		return stats, fmt.Errorf("writing a file: %w", out.err)
	}
	if err != nil {
		return stats, c.failure(ctx, "querying ClickHouse", err)
	}
	return stats, nil
}

// exportHTTP copies a result. The driver detects an exception that the server announces, and does not pass it on; a file that
// is cut off in another way lacks its end mark.
func exportHTTP(outer context.Context, h *host, settings driver.Settings, sql string, format FileFormat, out *endWatcher) (err error) {
	ctx, cancel := withoutDeadline(outer)
	defer cancel()
	body, err := h.http.QueryFormat(driver.Context(ctx, driver.WithSettings(settings)), string(format), sql)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			cancel() // hang up: the rest of the body is not needed
		}
		err = errors.Join(err, body.Close())
	}()
	buf, _ := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(buf)
	if _, err := io.CopyBuffer(out, onlyReader{body}, buf[:]); err != nil {
		return err
	}
	if !bytes.HasSuffix(out.end, endMarks[format]) {
		return fmt.Errorf("incomplete file: %w", io.ErrUnexpectedEOF)
	}
	return context.Cause(outer)
}

// onlyReader hides the body's other methods, so that it is read into the caller's buffer.
type onlyReader struct{ io.Reader }

// endWatcher keeps the last bytes written, and distinguishes errors of w from those of ClickHouse.
type endWatcher struct {
	w   io.Writer
	end []byte
	err error

	begun bool // something was written
}

const longestMark = 8

func (o *endWatcher) Write(p []byte) (int, error) {
	o.begun = true
	last := p[max(0, len(p)-longestMark):]
	o.end = append(o.end, last...)
	o.end = o.end[max(0, len(o.end)-longestMark):]
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}
