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

// FileFormat is a form in which ClickHouse itself writes a result as one file.
type FileFormat string

// The formats of files.
const (
	Parquet FileFormat = "Parquet"
	Arrow   FileFormat = "ArrowStream"
)

// endMarks are the bytes that a whole file ends with.
var endMarks = map[FileFormat][]byte{
	Parquet: []byte("PAR1"),
	Arrow:   {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
}

// ErrNoFiles says that the server is asked over the native protocol, which gives values and no files.
var ErrNoFiles = errors.New("files need ClickHouse's HTTP interface")

// Export runs a SELECT and writes its result to w as a file, while it arrives. Like Query, it returns nil only for a file that is
// whole; what w got before an error is worth nothing.
//
// Mistakes of the query and trouble of the server are *Error; ErrNoFiles and an error of w or of ctx are returned wrapped.
func (c *Client) Export(ctx context.Context, q Query, format FileFormat, w io.Writer) (stats Stats, err error) {
	began := time.Now()
	if q.Project <= 0 {
		return stats, fmt.Errorf("BUG: a query without a project: %d", q.Project)
	}
	if err := checkText(q.SQL); err != nil {
		return stats, fmt.Errorf("BUG: a query whose text is not the compiler's: %w", err)
	}
	if c.native != nil {
		return stats, fmt.Errorf("writing %s: %w", format, ErrNoFiles)
	}
	s, err := c.server(ctx)
	if err != nil {
		return stats, err
	}
	ctx, cancel := c.withinLimit(ctx)
	defer cancel()
	if q.ID == "" {
		q.ID = uuid.NewString() // to be stopped by
	}
	out := &endWatcher{w: w}
	exchange := &exchange{format: string(format), params: encodeParams(q.Params), queryID: q.ID}
	defer func() {
		exchange.report(&stats, q.Progress)
		stats.Elapsed = time.Since(began)
	}()
	err = c.exportHTTP(context.WithValue(ctx, exchangeKey{}, exchange), c.settings(ctx, s, q), q.SQL, format, out)
	c.stop(ctx, q.ID, err)
	if out.err != nil {
		return stats, fmt.Errorf("passing on a file: %w", out.err)
	}
	if err != nil {
		return stats, c.failure(ctx, "querying ClickHouse", err)
	}
	c.answered()
	return stats, nil
}

// exportHTTP copies a result. The driver looks for an exception that the server announced, and does not pass it on; a file that
// was cut in another way lacks its end.
func (c *Client) exportHTTP(outer context.Context, settings driver.Settings, sql string, format FileFormat, out *endWatcher) (err error) {
	ctx, cancel := withoutDeadline(outer)
	defer cancel()
	body, err := c.http.QueryFormat(driver.Context(ctx, driver.WithSettings(settings)), string(format), sql)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			cancel() // hang up: what is left of the body is not wanted
		}
		err = errors.Join(err, body.Close())
	}()
	buf, _ := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(buf)
	if _, err := io.CopyBuffer(out, onlyReader{body}, buf[:]); err != nil {
		return err
	}
	if !bytes.HasSuffix(out.end, endMarks[format]) {
		return fmt.Errorf("a file that is not whole: %w", io.ErrUnexpectedEOF)
	}
	return context.Cause(outer)
}

// onlyReader hides what else the body can do, so that it is read into our buffer.
type onlyReader struct{ io.Reader }

// endWatcher remembers the last bytes that it passed on, and keeps an error of w apart from those of ClickHouse.
type endWatcher struct {
	w   io.Writer
	end []byte
	err error
}

const longestMark = 8

func (o *endWatcher) Write(p []byte) (int, error) {
	last := p[max(0, len(p)-longestMark):]
	o.end = append(o.end, last...)
	o.end = o.end[max(0, len(o.end)-longestMark):]
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}
