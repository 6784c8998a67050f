// Package result shows results: it has the plan of a parsed request, and the members of answers around the rows. All topics share it.
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

// Plan is a parsed request: which result it wants, how fresh, and in which form. Plans are immutable and shared by all identical requests.
type Plan struct {
	*execution.Query
	execution.Freshness
	View

	Fixed  string                     // the variables that the key fixes
	Serial uint64                     // of the meaning of the project's queries: see registry.Snapshot.QuerySerial
	Until  time.Time                  // when the plan becomes invalid; zero for never
	Logged cache.Link[runlog.Tally]   // counts its runs
	Next   atomic.Pointer[FileHeader] // of the last file sent
}

// View is the form in which a result is shown.
type View struct {
	// The requested page; Limit is negative for all rows of the result.
	Offset, Limit int
	Debug         bool
	Format        Format
	WideAsText    bool // integers of more than 53 bits are strings
	Page          cache.PageKey
	Ref           cache.Ref // the snapshot that a cursor refers to; zero for the current result
	// Cut is the page of a snapshot on another server; nil for one of this server. A plan with a Cut is used only once.
	Cut        *execution.PeerCut
	Example    bool        // for a document: cursors and the like lead nowhere
	Attachment []string    // of a file: its Content-Disposition
	Shows      Extras      // of the query route: what its answers contain besides rows
	Notices    http.Header // nil if nothing is announced for the version
}

// Bounded returns an answer of a run at now, which is not fresh for longer than the table that its rows come from.
func (p *Plan) Bounded(got cache.Answer, now time.Time) cache.Answer {
	if end := p.endOfTable(got.Entry); !end.IsZero() {
		got.FreshFor = max(0, min(got.FreshFor, end.Sub(now)))
	}
	return got
}

// endOfTable returns when the table that the rows of a run come from is too old to be read; zero for rows of the query itself. The run may follow a cursor,
// whose plan does not know the table.
func (p *Plan) endOfTable(e *cache.Entry) time.Time {
	done, ok := e.Meta.(*execution.Details)
	if !ok || done.Materialized.IsZero() {
		return time.Time{}
	}
	return done.Materialized.Add(p.Fresh)
}

// IsPage reports whether only some of the rows are shown.
func (v *View) IsPage() bool { return v.Limit >= 0 }

// Size is roughly how much memory a plan takes, in bytes.
func (p *Plan) Size() int { return p.Query.Size() + len(p.Shows.Modifiers) + 512 }

// SetPage sets the page of the result that the plan shows, and its form: everything besides the result that a body depends on.
func (p *Plan) SetPage() {
	form := "query"
	if p.Endpoint != nil {
		form = fmt.Sprintf("run paged=%t debug=%t format=%s text=%t", p.IsPage(), p.Debug, p.Format, p.WideAsText)
	}
	p.Page = cache.PageKey{Offset: p.Offset, Limit: p.Limit, Variant: fmt.Sprintf("%s fresh=%s", form, p.Fresh)}
}

// The size of the memo of plans, and of a plan that is to be kept, in bytes.
const (
	plansMemory = 64 << 20
	planMemory  = 4 << 10
)

// NewPlans returns an empty memo of plans.
func NewPlans() *cache.Memo[*Plan] { return cache.NewMemoOf(plansMemory, planMemory, (*Plan).Size) }

// FileHeader holds the headers of a file with a page of a result.
type FileHeader struct {
	Entry  uint64 // the id of the result
	Header http.Header
}
