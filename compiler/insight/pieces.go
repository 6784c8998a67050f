package insight

import (
	"iter"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// Pieces is an insight in pieces of time, each of which can be computed without the others.
type Pieces struct {
	// Each is the query for the rows of all pieces, whatever their time is: equal texts have equal rows for the same span of the same data.
	Each hogql.Query
	// Pieces are those that the answer is made of, in the order of time.
	Pieces []Piece
	// Query is the query for the rows of some of the pieces, by their places in Pieces. The first column of a row is the place of its piece.
	Query func(places []int) hogql.Query
	// Rows makes the rows that Shape reads from those of all pieces, JSON arrays without their first column. It is false where the pieces do not
	// have the answer after all, so that the whole query has to be run.
	Rows func(pieces [][][]byte) (rows iter.Seq[[]byte], ok bool, err error)
}

// Piece is a span of time that is computed alone.
type Piece struct {
	// From is the beginning of the span, To its end, which is not part of it.
	From, To time.Time
	// Reach is the time from which on events decide about the rows: From, or earlier.
	Reach time.Time
	// Whole reports whether every answer that has the piece has all of it, so that its rows may be kept for other answers.
	Whole bool
}
