package compiler

import (
	"iter"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// Piece is a span of time whose rows are computed without those of others.
type Piece = insight.Piece

// Pieces is a query in pieces of time. Its rows are those that the whole query gives, put together from those of its pieces, of which a
// caller can keep what it has computed before.
type Pieces struct {
	// Text tells apart what pieces are made of: under the same schema of a project, pieces of equal texts and spans have equal rows, as long
	// as the data are the same.
	Text string
	// Pieces are those of this query, in the order of time.
	Pieces []Piece
	// Compile compiles the query for the rows of some pieces, by their places in Pieces. The first column of each row is the place of its
	// piece; keep the rest.
	Compile func(places []int) (*Compiled, error)
	// Rows puts the rows of all pieces together, each without its first column. It is false where they do not have the answer after all, so that
	// the whole query has to be run.
	Rows func(pieces [][][]byte) (rows iter.Seq[[]byte], ok bool, err error)
}
