package execution

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
)

// Buckets counts the pieces of time that an answer was put together from, and how many of them ClickHouse computed for it. All is 0 for an answer
// that was computed in one piece.
type Buckets struct{ Computed, All int }

// errNoPieces reports that the pieces can't give the answer, so the whole query has to run.
var errNoPieces = errors.New("the answer can't be put together from pieces")

// stitching is a query that is being put together from pieces.
type stitching struct {
	*compiler.Pieces
	found    *cache.Pieces
	spans    []cache.Span
	versions []*uint64       // of the data; nil where it is unknown or the rows may not be kept
	rows     []*cache.Result // nil: to be computed
	columns  []cache.Column
}

// settle is stitched for a query that can be put together from pieces; ok is false for other queries, which have to run in one piece.
func (x *Computation) settle(ctx context.Context, at *turn, compiled *compiler.Compiled, done *Details, began time.Time) (result *cache.Result, ok bool, err error) {
	if x.exec.WholeOnly || x.anew || x.query.Held != nil || x.query.Stored != nil || compiled.Pieces == nil || len(compiled.Pieces.Pieces) == 0 {
		return nil, false, nil
	}
	result, err = x.stitched(ctx, at, compiled, done, began)
	if err == nil {
		x.query.meter(x.exec.Metrics).countBuckets(done.Buckets)
		return result, true, nil
	}
	done.Buckets = Buckets{}
	if !byPieces(ctx, err) {
		return nil, false, err
	}
	if x.exec.Reports.Pieces != nil && !errors.Is(err, errNoPieces) {
		x.exec.Reports.Pieces(x.query, err)
	}
	return nil, false, nil
}

// byPieces reports whether the whole query may not have this error, so that it has to run.
func byPieces(ctx context.Context, err error) bool {
	if ctx.Err() != nil || IsRefusal(err) || errors.Is(err, context.Canceled) || errors.Is(err, errOtherValues) {
		return false
	}
	known, ok := errors.AsType[*clickhouse.Error](err)
	if !ok {
		return true
	}
	switch known.Kind {
	case clickhouse.UserError, clickhouse.Unrunnable, clickhouse.TooLarge:
		return true // the messages of errors and the sizes of results must be those of the whole query
	case clickhouse.Unavailable, clickhouse.Busy, clickhouse.Timeout, clickhouse.TooSlow, clickhouse.Memory, clickhouse.Internal:
	}
	return false
}

// stitched puts the rows of a query together from kept pieces whose data have not changed and from pieces that ClickHouse computes, which it keeps
// for other answers. The error is errNoPieces if the whole query has to run.
func (x *Computation) stitched(ctx context.Context, at *turn, compiled *compiler.Compiled, done *Details, began time.Time) (*cache.Result, error) {
	data, err := x.data(ctx, at, compiled)
	if err != nil {
		if _, ok := errors.AsType[*clickhouse.Error](err); ok && ctx.Err() == nil && !IsRefusal(err) {
			return nil, errNoPieces // only the probe failed
		}
		return nil, err
	}
	s := newStitching(compiled.Pieces, x.exec.Cache.Pieces(x.pieceKey(compiled)), x.versionsOf(data, compiled))
	if !s.useful() {
		return nil, errNoPieces
	}
	missing := s.missing()
	done.Buckets = Buckets{Computed: len(missing), All: len(s.Pieces.Pieces)}
	if len(missing) > 0 {
		if err := x.computePieces(ctx, at, s, missing, done, began); err != nil {
			return nil, err
		}
		if len(missing) < len(s.rows) && !x.warehouse().Probes() {
			// The kept pieces must be of the same moment as the computed ones.
			if data, err = x.data(ctx, at, compiled); err != nil {
				return nil, err
			}
			if now := x.versionsOf(data, compiled); s.outdated(missing, now) {
				s.versions = now // read before the query that follows
				done.Buckets.Computed = len(s.rows)
				if err := x.computePieces(ctx, at, s, s.all(), done, began); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := at.assemble(ctx); err != nil {
		return nil, err
	}
	result, err := s.put(compiled)
	if err != nil {
		at.endAssembly()
	}
	return result, err
}

// data returns the state of the data that the pieces of a query read.
func (x *Computation) data(ctx context.Context, at *turn, compiled *compiler.Compiled) (*warehouse.Data, error) {
	if x.warehouse().Probes() {
		if at.data != nil { // a probe costs time, and what is computed after it is at least as new
			return at.data, nil
		}
		if err := at.take(ctx); err != nil {
			return nil, err
		}
	}
	data, err := x.warehouse().Data(ctx, at.place, x.Project.ID, compiled.Reads)
	if err != nil {
		return nil, fmt.Errorf("reading the versions of the data: %w", err)
	}
	at.data = data
	return data, nil
}

// versionsOf returns the data version of each piece that may be kept; nil for the others.
func (x *Computation) versionsOf(data *warehouse.Data, compiled *compiler.Compiled) []*uint64 {
	out := make([]*uint64, len(compiled.Pieces.Pieces))
	for i, p := range compiled.Pieces.Pieces {
		if !p.Whole {
			continue
		}
		if version, ok := data.Version(compiled.Pieces.Reads, p.Reach, p.To); ok {
			out[i] = &version
		}
	}
	return out
}

// pieceKey returns the key of all queries whose pieces have equal rows while their data stay the same. It is made like the result's cache key,
// without the query's date range and the part of the mark that changes daily: no whole piece lies before the earliest events.
func (x *Computation) pieceKey(compiled *compiler.Compiled) cache.Key {
	text := sha256.Sum256([]byte(compiled.Pieces.Text))
	parts := cache.KeyParts{
		Project: x.Project.ID, Query: string(text[:]), Zone: x.Project.Timezone,
		Extra: "pieces " + strconv.Itoa(int(x.query.Rows)) + " " + strconv.FormatBool(x.query.Endpoint != nil) + " " +
			x.exec.known.keptMark(x.world.Schema(x.Project.ID), x.world.VariableDefaults(x.Project.ID), x.query.Node),
	}
	if x.Key != nil {
		parts.RowFilter = x.Key.Fixed
	}
	return parts.Key()
}

func newStitching(of *compiler.Pieces, found *cache.Pieces, versions []*uint64) *stitching {
	s := &stitching{
		Pieces: of, found: found, versions: versions, columns: found.Columns(),
		spans: make([]cache.Span, len(of.Pieces)), rows: make([]*cache.Result, len(of.Pieces)),
	}
	for i, p := range of.Pieces {
		s.spans[i] = cache.SpanOf(p.From, p.To)
		if version := versions[i]; version != nil {
			if kept := found.Find(s.spans[i]); kept != nil && kept.Version == *version {
				s.rows[i] = kept.Rows
			}
		}
	}
	return s
}

// useful reports whether any piece is kept or may be.
func (s *stitching) useful() bool {
	for _, version := range s.versions {
		if version != nil {
			return true
		}
	}
	return false
}

// missing returns the indexes of the pieces to be computed.
func (s *stitching) missing() (places []int) {
	for i, rows := range s.rows {
		if rows == nil {
			places = append(places, i)
		}
	}
	return places
}

func (s *stitching) all() []int {
	places := make([]int, len(s.rows))
	for i := range places {
		places[i] = i
	}
	return places
}

// outdated reports whether the data of any piece that was not computed now have another version.
func (s *stitching) outdated(computed []int, now []*uint64) bool {
	fresh := make(map[int]bool, len(computed))
	for _, i := range computed {
		fresh[i] = true
	}
	for i := range s.rows {
		if !fresh[i] && (now[i] == nil || *now[i] != *s.versions[i]) {
			return true
		}
	}
	return false
}

// computePieces computes some pieces in one query, and keeps those that may be kept.
func (x *Computation) computePieces(ctx context.Context, at *turn, s *stitching, places []int, done *Details, began time.Time) error {
	compiled, err := x.compilePieces(ctx, s.Pieces, places, done)
	if err != nil {
		return err
	}
	if err := at.take(ctx); err != nil {
		return err
	}
	to := &pieceSink{row: compiled.Row, columns: &s.columns, places: make([]*cache.Builder, len(s.rows))}
	for _, i := range places {
		to.places[i] = cache.NewBuilder(cache.Limits{MaxBytes: MaxResultBytes})
		if err := to.places[i].Columns(nil); err != nil {
			return err
		}
	}
	if err := x.ask(ctx, at, compiled, nil, done, to, func() int64 { return to.bytes }); err != nil {
		return err
	}
	if at.elsewhere {
		return errNoPieces // the kept ones are of another host
	}
	computed := make(map[cache.Span]*cache.Piece, len(places))
	for _, i := range places {
		s.rows[i] = to.places[i].Result()
		if version := s.versions[i]; version != nil {
			computed[s.spans[i]] = &cache.Piece{Rows: s.rows[i], Version: *version, ComputedAt: began, Reach: s.Pieces.Pieces[i].Reach}
		}
	}
	x.exec.Cache.KeepPieces(s.found, s.columns, computed, s.spans)
	return nil
}

// compilePieces compiles the query for some pieces in its turn.
func (x *Computation) compilePieces(ctx context.Context, of *compiler.Pieces, places []int, done *Details) (compiled *compiler.Compiled, err error) {
	start := time.Now()
	err = x.compiles.do(ctx, func(func() error) (err error) {
		compiled, err = of.Compile(places)
		return err
	})
	if x.compiles.counted > 0 {
		x.counted.Store(true)
	}
	x.query.refused(x.exec.Metrics, err)
	if err != nil {
		return nil, fmt.Errorf("compiling pieces: %w", err)
	}
	done.Compile += time.Since(start)
	done.SQL = compiled.SQL
	return compiled, nil
}

// put builds the rows of the whole query from the rows of all pieces.
func (s *stitching) put(compiled *compiler.Compiled) (*cache.Result, error) {
	all := make([][][]byte, len(s.rows))
	count, size := 0, 0
	for i, rows := range s.rows {
		count += rows.Len()
		all[i] = make([][]byte, 0, rows.Len())
		for row := range rows.Rows() {
			all[i] = append(all[i], row)
			size += len(row) + 1
		}
	}
	if count > MaxResultRows || size > MaxResultBytes {
		return nil, errNoPieces // only the whole query can tell whether these are too many
	}
	rows, ok, err := s.Rows(all)
	if err != nil {
		return nil, fmt.Errorf("putting pieces together: %w", err)
	}
	if !ok {
		return nil, errNoPieces
	}
	out := cache.NewBuilder(limitsOf(compiled))
	if err := out.Columns(s.columns[:min(len(s.columns), max(len(compiled.Columns), 1))]); err != nil {
		return nil, err
	}
	for row := range rows {
		if compiled.Row != nil {
			if row, err = compiled.Row(row); err != nil {
				return nil, fmt.Errorf("making a row: %w", err)
			}
		}
		if err := out.Row(row); err != nil {
			return nil, errNoPieces // too large, as above
		}
	}
	return out.Result(), nil
}

// pieceSink distributes rows, which begin with the index of their piece, to the results of the pieces.
type pieceSink struct {
	row     func([]byte) ([]byte, error) // as in sink
	columns *[]cache.Column              // without the first column
	places  []*cache.Builder             // nil for pieces that were not asked for
	bytes   int64
	buffer  []byte
}

// Columns notes the columns of the rows.
func (s *pieceSink) Columns(columns []clickhouse.Column) error {
	if len(columns) == 0 {
		return errors.New("BUG: the rows of pieces have no column")
	}
	out := make([]cache.Column, len(columns)-1)
	for i, c := range columns[1:] {
		out[i] = cache.Column(c)
	}
	*s.columns = out
	return nil
}

// Row keeps a row.
func (s *pieceSink) Row(row []byte) error {
	if s.row != nil {
		var err error
		if row, err = s.row(row); err != nil {
			return err
		}
	}
	place, rest, err := splitPlace(row)
	if err != nil {
		return err
	}
	if place < 0 || place >= len(s.places) || s.places[place] == nil {
		return fmt.Errorf("BUG: a row of piece %d, which was not asked for", place)
	}
	s.buffer = append(append(s.buffer[:0], '['), rest...)
	s.bytes += int64(len(s.buffer))
	return s.places[place].Row(s.buffer)
}

// Restart implements clickhouse.Restarter.
func (s *pieceSink) Restart() bool {
	s.bytes = 0
	for _, rows := range s.places {
		if rows == nil {
			continue
		}
		rows.Reset()
		if err := rows.Columns(nil); err != nil {
			return false
		}
	}
	return true
}

// splitPlace splits a row into its first cell, a number, and the rest, including the closing bracket.
func splitPlace(row []byte) (place int, rest []byte, err error) {
	first, rest, more := bytes.Cut(row, []byte(","))
	if !more {
		first, rest = bytes.TrimSuffix(row, []byte("]")), []byte("]")
	}
	digits, ok := bytes.CutPrefix(first, []byte("["))
	if !ok {
		return 0, nil, fmt.Errorf("BUG: a row of a piece that is no array: %.100s", row)
	}
	place, err = strconv.Atoi(string(bytes.Trim(bytes.TrimSpace(digits), `"`)))
	if err != nil {
		return 0, nil, fmt.Errorf("BUG: a row of a piece without its place: %w", err)
	}
	return place, bytes.TrimLeft(rest, " "), nil
}

// addCosts adds the costs of two queries.
func addCosts(a, b clickhouse.Stats) clickhouse.Stats {
	return clickhouse.Stats{Rows: a.Rows + b.Rows, ReadRows: a.ReadRows + b.ReadRows, ReadBytes: a.ReadBytes + b.ReadBytes, Elapsed: a.Elapsed + b.Elapsed}
}

// nextID gives a query its own id on ClickHouse if the computation has sent one before.
func (d *Details) nextID() {
	if d.asked {
		d.ExecutionID = uuid.New()
	}
	d.asked = true
}
