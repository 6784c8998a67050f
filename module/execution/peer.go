package execution

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Peers are the other servers of the deployment. A result has one owner among all servers: the others ask it, so that a query runs once.
type Peers interface {
	// Owner is the server that owns a result. It is false if this one does.
	Owner(key [sha256.Size]byte) (nodes.Node, bool)
	// Named is another server by its name: see nodes.Directory.
	Named(ctx context.Context, name string) (nodes.Node, error)
	// Ended reports whether a server at whose address nobody answers has ended.
	Ended(ctx context.Context, node nodes.Node) (bool, error)
	// Others are the other servers that can be asked.
	Others() (living, dead []nodes.Node)
	// Ask asks a server. It returns an error when that does not answer.
	Ask(ctx context.Context, node nodes.Node, request []byte) (peers.Answer, error)
}

// PeerForm is the number of the form of requests and answers. Servers with another one are not asked.
const PeerForm = 1

// Recipe says how another server plans the same query. It never has SQL: what the query reads, and whether its caller may have it run, is found out there.
type Recipe struct {
	// Endpoint is the name of the endpoint that is run, and Run the body of its run.
	Endpoint string          `json:"endpoint,omitempty"`
	Run      json.RawMessage `json:"run,omitempty"`
	// Query is the JSON of a query, over which Variables and Filters are put: see the overrides of the query route.
	Query     json.RawMessage `json:"query,omitempty"`
	Variables json.RawMessage `json:"variables,omitempty"`
	Filters   json.RawMessage `json:"filters,omitempty"`
	// Insight is the number of the saved insight whose query it is; 0 for none.
	Insight int64 `json:"insight,omitempty"`
}

// Size is about what a recipe takes in memory, in bytes.
func (r *Recipe) Size() int {
	if r == nil {
		return 0
	}
	return len(r.Run) + len(r.Query) + len(r.Variables) + len(r.Filters) + 128
}

// PeerRequest is what a server asks the owner of a result.
type PeerRequest struct {
	Form    int    `json:"form"`
	Nonce   string `json:"nonce"` // the answer has it
	Project int64  `json:"project"`
	// Key is the digest of the key of the result; empty for a page that a cursor names.
	Key string `json:"key,omitempty"`
	// Revision is that of the registry as the request was understood with it.
	Revision uint64 `json:"revision"`
	// Source is what results of the server depend on: one of another source would give other rows. See Executor.Source.
	Source string     `json:"source,omitempty"`
	Caller PeerCaller `json:"caller"`
	Recipe Recipe     `json:"recipe"`
	Poll   *PeerPoll  `json:"poll,omitempty"` // in place of a recipe
	// Fresh is how old the result may be.
	Fresh      time.Duration `json:"fresh"`
	Recompute  bool          `json:"recompute,omitempty"`
	Background bool          `json:"background,omitempty"` // nobody waits for it
	Label      string        `json:"label,omitempty"`
}

// PeerCaller is for whom a server asks: a key, or a token that stands for one.
type PeerCaller struct {
	ID    string     `json:"id"`
	Hash  string     `json:"hash"` // of the key: one that was rolled has another
	Token *PeerToken `json:"token,omitempty"`
}

// PeerToken is what a token says, which never is more than its key may.
type PeerToken struct {
	Fixed     string    `json:"fixed,omitempty"`
	Endpoints []string  `json:"endpoints"`
	Expires   time.Time `json:"expires"`
	Secret    string    `json:"secret"` // the id of the one that signed it
	// Share is the id of the token if it has a rate of its own, of so many Queries in Per.
	Share   string        `json:"share,omitempty"`
	Queries int           `json:"queries,omitempty"`
	Per     time.Duration `json:"per,omitempty"`
}

// errPeerRequest refuses what is no request.
var errPeerRequest = errors.New("this is not a request in a form that can be read")

// ReadPeerRequest reads a request.
func ReadPeerRequest(data []byte) (*PeerRequest, error) {
	r := new(PeerRequest)
	if json.Unmarshal(data, r) != nil || r.Form != PeerForm || r.Project <= 0 || r.Fresh < 0 || len(r.Nonce) != 2*nonceBytes {
		return nil, errPeerRequest
	}
	return r, nil
}

const nonceBytes = 16

// PeerRequestOf is a request for a caller.
func PeerRequestOf(c *Caller, recipe Recipe) *PeerRequest {
	var nonce [nonceBytes]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return &PeerRequest{
		Form: PeerForm, Nonce: hex.EncodeToString(nonce[:]), Project: c.Project.ID, Revision: c.Snapshot.Revision, Caller: peerCaller(c), Recipe: recipe,
	}
}

func peerCaller(c *Caller) PeerCaller {
	out := PeerCaller{ID: c.Key.ID, Hash: hex.EncodeToString(c.Key.Hash[:])}
	if known := c.Snapshot.KeyByHash(c.Key.Hash); known != nil && c.Share == nil && known.Fixed == c.Key.Fixed && slices.Equal(known.Endpoints, c.Key.Endpoints) {
		return out
	}
	out.Token = &PeerToken{Fixed: c.Key.Fixed, Endpoints: c.Key.Endpoints, Expires: c.Key.ExpiresAt, Secret: c.TokenSecret}
	if c.Share != nil {
		out.Token.Share, out.Token.Queries, out.Token.Per = c.Share.id, c.Share.rate.Queries, c.Share.rate.Per
	}
	return out
}

// Rate is the rate of the token's own; zero for none.
func (t *PeerToken) Rate() registry.Rate { return registry.Rate{Queries: t.Queries, Per: t.Per} }

// What came of asking another server, in metrics.
const (
	peerStored = iota
	peerComputed
	peerFailed
	peerDeclined
	peerSilent
	peerUnfit
)

// peerResults are their names.
var peerResults = [...]string{
	peerStored: "stored", peerComputed: "computed", peerFailed: "failed", peerDeclined: "declined", peerSilent: "silent", peerUnfit: "unfit",
}

// fromOwner gets the result from the server that owns it. It is false when this server has to compute it: it is the owner, or the owner can't.
func (x *Computation) fromOwner(ctx context.Context) (_ *cache.Entry, ok bool, _ error) {
	if x.exec.Peers == nil || x.local || x.Key == nil || x.query.Recipe == nil {
		return nil, false, nil
	}
	owner, ok := x.exec.Peers.Owner(x.query.Key.Digest())
	if !ok {
		return nil, false, nil
	}
	end, ok := x.exec.Hops.ask(x.query.Key)
	if !ok {
		return nil, false, nil
	}
	defer end()
	asking, asked := traced(ctx, "analytics.peer")
	entry, result, err := x.askOwner(asking, owner)
	asked(err)
	if ctx.Err() != nil {
		return nil, true, context.Cause(ctx)
	}
	x.query.meter(x.exec.Metrics).peer(peerResults[result])
	return entry, entry != nil || err != nil, err
}

// question is a request that was sent to the owner of a result.
type question struct {
	*PeerRequest

	began time.Time
}

// question is the next one for the result. outdated is when results were last removed before the first one.
func (x *Computation) question(outdated time.Time) question {
	key := x.query.Key.Digest()
	q := question{PeerRequestOf(&x.Caller, *x.query.Recipe), time.Now()}
	q.Key, q.Source, q.Fresh, q.Recompute, q.Label = hex.EncodeToString(key[:]), x.exec.Source, x.policy.Fresh, x.anew, x.query.Label
	if !outdated.IsZero() { // what was computed before may lack what is known to be there
		q.Fresh = max(0, min(q.Fresh, q.began.Sub(outdated)))
	}
	return q
}

// reply is what came of a question.
type reply struct {
	to question
	peers.Answer
	err error
}

// askOwner asks the owner. An error is that of the query; there is neither an entry nor an error when this server has to compute it.
func (x *Computation) askOwner(ctx context.Context, owner nodes.Node) (entry *cache.Entry, result int, err error) {
	outdated := x.exec.Cache.OutdatedAt(x.Project.ID)
	first := x.question(outdated)
	awaited := cache.Awaited(ctx)
	select {
	case <-awaited:
		awaited = nil
	default:
		first.Background = true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of a question that is no longer waited for
	replies := make(chan reply, 2)
	asked := 0
	ask := func(q question) {
		asked++
		go func() {
			data, err := json.Marshal(q.PeerRequest)
			if err != nil { // a query that can't be sent is computed here
				replies <- reply{to: q, Answer: peers.Declined(err.Error())}
				return
			}
			got, err := x.exec.Peers.Ask(ctx, owner, data)
			replies <- reply{q, got, err}
		}()
	}
	x.picked.CompareAndSwap(0, first.began.UnixNano())
	ask(first)
	for {
		select {
		case <-awaited: // nobody did when it was asked for; the owner lets this question wait for the same computation, which now comes first
			awaited = nil
			again := x.question(outdated)
			if x.anew { // what the first question causes is new enough
				again.Recompute, again.Fresh = false, again.began.Sub(first.began)
			}
			ask(again)
		case got := <-replies:
			entry, result, err = x.understand(got, first.began, outdated)
			if asked--; entry != nil || err != nil || asked == 0 {
				return entry, result, err
			}
		}
	}
}

// understand is what a reply says, see askOwner.
func (x *Computation) understand(got reply, first, outdated time.Time) (entry *cache.Entry, result int, err error) {
	if got.err != nil {
		return nil, peerSilent, nil //nolint:nilerr // the result is computed here
	}
	switch got.Kind {
	case peers.Result:
		answer, err := readPeerResult(got.Body, got.to.PeerRequest)
		if err != nil || !x.takes(answer, got.to.began, first, outdated) {
			return nil, peerUnfit, nil //nolint:nilerr // the result is computed here
		}
		result = peerComputed
		if answer.head.Stored {
			result = peerStored
		}
		if answer.head.Counted {
			x.counted.Store(true)
		}
		return x.entryOf(answer, got.to.began), result, nil
	case peers.Failure:
		if failure := x.failureOf(got.Body, got.to.PeerRequest); failure != nil {
			return nil, peerFailed, failure
		}
		return nil, peerUnfit, nil
	case peers.Decline:
	}
	return nil, peerDeclined, nil
}

// takes reports whether an answer is one to the question: of this key, and not older than it may be. How old it is, is told by this server's clock.
// began is when it was asked, first when the first question for the result was, and outdated when results were last removed before that. If they were since, the answer is for those who wait for it alone, as one that is
// computed here would be: its flight is retired, and the cache does not keep it.
func (x *Computation) takes(a *peerResult, began, first, outdated time.Time) bool {
	if a.head.Key == "" || a.page() {
		return false
	}
	at := began.Add(a.head.Since)
	switch {
	case x.anew:
		return !at.Before(first)
	case at.Before(outdated):
		return false
	case a.head.Since > -x.policy.Fresh:
		return true
	}
	return x.policy.Lasting != nil && x.policy.Lasting(cache.NewEntry(a.rows, at, a.details(), 0))
}

// entryOf is an answer as this server keeps it. What it says of the query is not believed: that is known here.
func (x *Computation) entryOf(a *peerResult, began time.Time) *cache.Entry {
	now := time.Now()
	at := began.Add(a.head.Since)
	if at.After(now) {
		at = now
	}
	done := a.details()
	done.Marks, done.Version, done.Peer = x.query.Marks, 0, now.Sub(began)
	if x.query.Endpoint != nil {
		done.Version = x.query.Version.Number
	}
	entry := cache.NewEntry(a.rows, at, done, done.Size())
	entry.Fetched, entry.Renewed = a.head.Stored, a.head.Renewed && done.Renewal != nil
	return entry
}

// ForPeer gets the result that another server asks for: stored, or computed here, and never by a third one.
func (e *Executor) ForPeer(ctx context.Context, c *Caller, q *Query, f *Freshness, asked *PeerRequest) peers.Answer {
	if key := q.Key.Digest(); hex.EncodeToString(key[:]) != asked.Key {
		return peers.Declined("the query means something else here")
	}
	end, ok := e.Hops.serve(q.Key)
	if !ok {
		return peers.Declined("it is asked for elsewhere")
	}
	defer end()
	policy := f.Policy(c.Start)
	policy.Fresh, policy.Mode, policy.Background = asked.Fresh, cache.NoStale, asked.Background
	if asked.Recompute {
		policy.Mode = cache.Recompute
	}
	if asked.Fresh < f.Fresh {
		policy.Lasting = nil
	}
	x := e.Computation(c, q)
	x.local = true
	if asked.Background {
		x.patience = runPatience
	}
	got, err := x.answer(ctx, policy)
	switch {
	case err != nil:
		return peerFailure(err, asked)
	case got.Status == cache.StaleError:
		return peers.Declined("ClickHouse does not answer")
	}
	return sendResult(got, q.Key, asked, c.Start, nil, x.counted.Load())
}

// PeerCut is a page of a snapshot that another server has.
type PeerCut struct {
	Answer        cache.Answer // the rows of the page alone, see cache.Result.Cut
	Key           cache.Key
	Offset, Limit int
	Next          string // the cursor of the page after it; empty for none
}

// AskCut asks the server that has a snapshot for the page that a cursor names. The error is ErrSnapshotGone if the server says that the page
// is gone. All other errors may be temporary.
func (e *Executor) AskCut(ctx context.Context, c *Caller, node nodes.Node, recipe Recipe) (*PeerCut, error) {
	began := time.Now()
	request := PeerRequestOf(c, recipe)
	data, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("asking for a page: %w", err)
	}
	got, err := e.Peers.Ask(ctx, node, data)
	if err != nil {
		return nil, err
	}
	if got.Kind != peers.Result {
		if in, ok := readPeerFailure(got.Body); got.Kind == peers.Failure && ok && in.Gone && in.Nonce == request.Nonce {
			return nil, ErrSnapshotGone
		}
		return nil, fmt.Errorf("%w: %.100q", errNoCut, got.Body)
	}
	answer, err := readPeerResult(got.Body, request)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	at := began.Add(min(answer.head.Since, 0))
	done, page := answer.details(), answer.head.Page
	done.Peer = now.Sub(began)
	return &PeerCut{
		Answer: cache.Answer{Entry: cache.NewEntry(answer.rows, at, done, done.Size()), Status: cache.Fetched, Age: now.Sub(at), FreshFor: page.Fresh},
		Key:    cache.KeyParts{Project: c.Project.ID, RowFilter: c.Key.Fixed, Endpoint: recipe.Endpoint, Extra: "page"}.Key(),
		Offset: page.Offset, Limit: page.Limit, Next: page.Next,
	}, nil
}

var errNoCut = errors.New("another server does not give the page that a cursor names")

// CutForPeer is the page of a snapshot that another server asks for.
func CutForPeer(got cache.Answer, key cache.Key, asked *PeerRequest, arrived time.Time, page *PeerPage) peers.Answer {
	if asked.Key != "" {
		return peers.Declined("it asks for a result, not for a page")
	}
	return sendResult(got, key, asked, arrived, page, false)
}

// NoCutForPeer says that there is no page any more for the cursor that another server asks about.
func NoCutForPeer(asked *PeerRequest) peers.Answer {
	return sendFailure(peerError{Nonce: asked.Nonce, Gone: true})
}

// peerError is a failure as it is sent.
type peerError struct {
	Nonce      string          `json:"nonce"`
	ClickHouse *peerClickHouse `json:"clickhouse,omitempty"`
	Limit      *LimitError     `json:"limit,omitempty"`
	Gone       bool            `json:"gone,omitempty"` // the page that a cursor names
}

type peerClickHouse struct {
	Kind    clickhouse.ErrorKind `json:"kind"`
	Code    int                  `json:"code"`
	Name    string               `json:"name"`
	Message string               `json:"message"`
}

// peerFailure sends the failures that would be the same for the other server, or cost as much again. A mistake in a query is found there, with its place.
func peerFailure(err error, asked *PeerRequest) peers.Answer {
	out := peerError{Nonce: asked.Nonce}
	if failed, ok := errors.AsType[*clickhouse.Error](err); ok {
		switch failed.Kind {
		case clickhouse.Unavailable, clickhouse.Internal:
			return peers.Declined("ClickHouse does not answer")
		default:
		}
		out.ClickHouse = &peerClickHouse{failed.Kind, failed.Code, failed.Name, failed.Message}
	} else if limit, ok := errors.AsType[*LimitError](err); ok {
		out.Limit = limit
	} else {
		return peers.Declined("it can't be computed here")
	}
	return sendFailure(out)
}

func sendFailure(out peerError) peers.Answer {
	body, err := json.Marshal(out)
	if err != nil {
		return peers.Declined("the failure can't be sent")
	}
	return peers.Answer{Kind: peers.Failure, Body: body}
}

// failureOf reads a failure; nil for what is none that this query could have.
func (x *Computation) failureOf(data []byte, asked *PeerRequest) error {
	in, ok := readPeerFailure(data)
	switch {
	case !ok || in.Nonce != asked.Nonce:
		return nil
	case in.ClickHouse != nil:
		e := in.ClickHouse
		return &clickhouse.Error{Kind: e.Kind, Code: e.Code, Name: e.Name, Message: e.Message}
	case in.Limit == nil: // not of a query
		return nil
	case in.Limit.Owner == "" || x.quotas().owns(in.Limit.Owner): // another's refusal is no answer
		return in.Limit
	}
	return nil
}

// readPeerFailure reads a failure. It is false for what is none.
func readPeerFailure(data []byte) (in peerError, ok bool) {
	if json.Unmarshal(data, &in) != nil {
		return in, false
	}
	switch {
	case in.ClickHouse != nil:
		return in, in.ClickHouse.Kind > clickhouse.Internal && in.ClickHouse.Kind <= clickhouse.Unrunnable
	case in.Limit != nil:
		return in, slices.Contains([]LimitName{LimitEndpoint, LimitKey, LimitToken, LimitConcurrency}, in.Limit.Limit) && in.Limit.Wait >= 0
	}
	return in, in.Gone
}
