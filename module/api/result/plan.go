// Package result shows results: a request that was understood, as a plan, and the members of answers around the rows. Topics share it.
package result

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
)

// Plan is a request that was understood: which result it wants, how fresh, and how to show it. Plans are immutable and shared by
// all requests that look the same.
type Plan struct {
	*execution.Query
	execution.Freshness
	View

	Fixed  string                     // the variables that the key of the run fixes
	Serial uint64                     // of what its project's queries meant: see registry.Snapshot.QuerySerial
	Until  time.Time                  // when what it decided no longer holds; zero for never
	Logged cache.Link[runlog.Tally]   // counts its runs
	Next   atomic.Pointer[FileHeader] // of the file that was sent last
}

// View is how a result is shown.
type View struct {
	// The page that is wanted; limit is negative for all rows of the result.
	Offset, Limit int
	Debug         bool
	Format        Format
	WideAsText    bool // integers of more than 53 bits are strings
	Page          cache.PageKey
	Ref           cache.Ref // the snapshot that a cursor names; zero for the result as it stands
	// Cut is the page of a snapshot that another server has; nil for one of this server. A plan with one is for one answer.
	Cut        *execution.PeerCut
	Example    bool        // for a document: whatever would let the reader go on leads nowhere
	Attachment []string    // of a file: its Content-Disposition
	Shows      Extras      // of the query route: what its answers have beside the rows
	Notices    http.Header // nil for a version that nothing is announced of
}

// IsPage reports whether a part of the rows is shown.
func (v *View) IsPage() bool { return v.Limit >= 0 }

// Size is about what a plan takes in memory, in bytes.
func (p *Plan) Size() int { return p.Query.Size() + len(p.Shows.Modifiers) + 512 }

// SetPage fixes which page of the result the plan shows, and in what form: all that a body depends on beside the result.
func (p *Plan) SetPage() {
	form := "query"
	if p.Endpoint != nil {
		form = fmt.Sprintf("run paged=%t debug=%t format=%s text=%t", p.IsPage(), p.Debug, p.Format, p.WideAsText)
	}
	p.Page = cache.PageKey{Offset: p.Offset, Limit: p.Limit, Variant: fmt.Sprintf("%s fresh=%s", form, p.Fresh)}
}

// PlanMemory is what the memo of plans may hold, in bytes of requests.
const PlanMemory = 16 << 20

// FileHeader is the headers of a file with a page of one result.
type FileHeader struct {
	Entry  uint64 // the id of the result
	Header http.Header
}
