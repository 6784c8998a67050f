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

// Peers are the other servers of the deployment. Each result has one owner among all servers; the others ask the owner, so that a query runs once.
type Peers interface {
	// Owner returns the server that owns a result; false if this server does.
	Owner(key [sha256.Size]byte) (nodes.Node, bool)
	// Named returns another server by its name: see nodes.Directory.
	Named(ctx context.Context, name string) (nodes.Node, error)
	// Ended reports whether a server that does not answer at its address has ended.
	Ended(ctx context.Context, node nodes.Node) (bool, error)
	// Others returns the other servers that can be asked.
	Others() (living, dead []nodes.Node)
	// Ask sends a request to a server. It returns an error if the server does not answer.
	Ask(ctx context.Context, node nodes.Node, request []byte) (peers.Answer, error)
}

// PeerForm is the version of the format of requests and answers. Servers with another version are not asked.
const PeerForm = 1

// Recipe tells another server how to plan the same query. It never contains SQL: the other server itself determines what the query reads and whether
// its caller may run it.
type Recipe struct {
	// Endpoint is the name of the endpoint to run, and Run the body of the run.
	Endpoint string          `json:"endpoint,omitempty"`
	Run      json.RawMessage `json:"run,omitempty"`
	// Query is the JSON of a query, to which Variables and Filters are applied: see the overrides of the query route.
	Query     json.RawMessage `json:"query,omitempty"`
	Variables json.RawMessage `json:"variables,omitempty"`
	Filters   json.RawMessage `json:"filters,omitempty"`
	// Insight is the id of the saved insight whose query it is; 0 for none.
	Insight int64 `json:"insight,omitempty"`
}

// Size returns about how many bytes of memory a recipe takes.
func (r *Recipe) Size() int {
	if r == nil {
		return 0
	}
	return len(r.Run) + len(r.Query) + len(r.Variables) + len(r.Filters) + 128
}

// PeerRequest is what a server asks the owner of a result.
type PeerRequest struct {
	Form    int    `json:"form"`
	Nonce   string `json:"nonce"` // returned in the answer
	Project int64  `json:"project"`
	// Key is the digest of the key of the result; empty for a page that a cursor names.
	Key string `json:"key,omitempty"`
	// Revision is the registry's revision with which the request was understood.
	Revision uint64 `json:"revision"`
	// Source is what this server's results depend on: a server with another source would return other rows. See [Peering].
	Source string     `json:"source,omitempty"`
	Caller PeerCaller `json:"caller"`
	Recipe Recipe     `json:"recipe"`
	Poll   *PeerPoll  `json:"poll,omitempty"` // instead of a recipe
	// Fresh is how old the result may be.
	Fresh      time.Duration `json:"fresh"`
	Recompute  bool          `json:"recompute,omitempty"`
	Background bool          `json:"background,omitempty"` // nobody waits for it
	Label      string        `json:"label,omitempty"`
}

// PeerCaller is the caller for whom a server asks: a key, or a token that stands for one.
type PeerCaller struct {
	ID    string     `json:"id"`
	Hash  string     `json:"hash"` // of the key: it changes when the key is rolled
	Token *PeerToken `json:"token,omitempty"`
}

// PeerToken is the content of a token, which never grants more than its key.
type PeerToken struct {
	Fixed     string    `json:"fixed,omitempty"`
	Endpoints []string  `json:"endpoints"`
	Expires   time.Time `json:"expires"`
	Secret    string    `json:"secret"` // the id of the secret that signed it
	// Share is the id of the token if it has a rate of its own, of Queries in Per.
	Share   string        `json:"share,omitempty"`
	Queries int           `json:"queries,omitempty"`
	Per     time.Duration `json:"per,omitempty"`
}

// errPeerRequest refuses data that is not a request.
var errPeerRequest = errors.New("malformed request")

// ReadPeerRequest reads a request.
func ReadPeerRequest(data []byte) (*PeerRequest, error) {
	r := new(PeerRequest)
	if json.Unmarshal(data, r) != nil || r.Form != PeerForm || r.Project <= 0 || r.Fresh < 0 || len(r.Nonce) != 2*nonceBytes {
		return nil, errPeerRequest
	}
	return r, nil
}

const nonceBytes = 16

// PeerRequestOf returns a request on behalf of a caller.
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

// Rate returns the token's own rate; zero for none.
func (t *PeerToken) Rate() registry.Rate { return registry.Rate{Queries: t.Queries, Per: t.Per} }

// The outcomes of asking another server.
const (
	peerStored = iota
	peerComputed
	peerFailed
	peerDeclined
	peerSilent
	peerUnfit
)

// peerResults are their names in metrics.
var peerResults = [...]string{
	peerStored: "stored", peerComputed: "computed", peerFailed: "failed", peerDeclined: "declined", peerSilent: "silent", peerUnfit: "unfit",
}

// fromOwner gets the result from the server that owns it. ok is false if this server has to compute it: it is the owner, or the owner can't give it.
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

// question returns the next request for the result. outdated is when results were last removed before the first one.
func (x *Computation) question(outdated time.Time) question {
	key := x.query.Key.Digest()
	q := question{PeerRequestOf(&x.Caller, *x.query.Recipe), time.Now()}
	q.Key, q.Source, q.Fresh, q.Recompute, q.Label = hex.EncodeToString(key[:]), x.exec.Source, x.policy.Fresh, x.anew, x.query.Label
	if !outdated.IsZero() { // an older result may lack data that is known to be there
		q.Fresh = max(0, min(q.Fresh, q.began.Sub(outdated)))
	}
	return q
}

// reply is the outcome of a question.
type reply struct {
	to question
	peers.Answer
	err error
}

// askOwner asks the owner for the result. An error is that of the query. If both entry and err are nil, this server has to compute the result.
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
	defer cancel() // ends a question that is no longer waited for
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
		case <-awaited: // nobody waited when the first was sent; the owner lets both wait for the same computation, which now takes precedence
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

// understand interprets a reply; see askOwner.
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

// takes reports whether an answer fits the question: it must be of this key and not older than allowed. Its age is measured by this server's clock. began is
// when the question was asked, first when the first question for the result was asked, and outdated when results were last removed before that. If results
// were removed since, only those who already wait get the answer, as for one computed here: its flight is retired, and the cache does not keep it.
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

// entryOf converts an answer to a cache entry. What the answer says about the query is not trusted: this server knows it itself.
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

// ForPeer gets the result that another server asks for. It is stored or computed here; no third server is asked.
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
	x := e.NewComputation(c, q)
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

// PeerCut is a page of a snapshot that another server holds.
type PeerCut struct {
	Answer        cache.Answer // only the rows of the page, see cache.Result.Cut
	Key           cache.Key
	Offset, Limit int
	Next          string // the cursor of the next page; empty for none
}

// AskCut asks the server that holds a snapshot for the page that a cursor names. The error is ErrSnapshotGone if that server says that the page is
// gone. All other errors may be temporary.
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

var errNoCut = errors.New("the server with the rows of the cursor did not return the page")

// CutForPeer returns the page of a snapshot that another server asks for.
func CutForPeer(got cache.Answer, key cache.Key, asked *PeerRequest, arrived time.Time, page *PeerPage) peers.Answer {
	if asked.Key != "" {
		return peers.Declined("it asks for a result, not for a page")
	}
	return sendResult(got, key, asked, arrived, page, false)
}

// NoCutForPeer tells another server that the page its cursor names is gone.
func NoCutForPeer(asked *PeerRequest) peers.Answer {
	return sendFailure(peerError{Nonce: asked.Nonce, Gone: true})
}

// peerError is a failure as sent to another server.
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

// peerFailure sends a failure that the other server would get too, or at the same cost. It declines for a mistake in a query, which the other server
// finds itself, with its position.
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

// failureOf reads a failure; nil if it is not one that this query could have.
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
	case in.Limit.Owner == "" || x.quotas().owns(in.Limit.Owner): // a refusal of another's allowance is no answer
		return in.Limit
	}
	return nil
}

// readPeerFailure reads a failure. ok is false if data is none.
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
