package execution

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

// A result is sent as the length of its head in 4 bytes, its head in JSON, and its rows in the format of cache.Result.
const headLength = 4

// peerHead is what is sent with the rows of a result.
type peerHead struct {
	Nonce   string `json:"nonce"` // of the request
	Project int64  `json:"project"`
	Key     string `json:"key"` // the digest of the result's key
	// Since is when the computation began, counted from the arrival of the request; negative if before. It does not depend on clocks that differ.
	Since   time.Duration `json:"since"`
	Stored  bool          `json:"stored,omitempty"`  // it existed before the request came
	Renewed bool          `json:"renewed,omitempty"` // see cache.Entry
	Counted bool          `json:"counted,omitempty"` // a query of it was counted on the rates of its caller
	Page    *PeerPage     `json:"page,omitempty"`
	Details peerDetails   `json:"details"`
}

// PeerPage says which rows a cursor names, and what follows.
type PeerPage struct {
	Offset int           `json:"offset"`
	Limit  int           `json:"limit"`
	Next   string        `json:"next,omitempty"`  // the cursor of the next page; empty for none
	Fresh  time.Duration `json:"fresh,omitempty"` // how long the result stays fresh
}

// peerDetails is the format in which Details are sent.
type peerDetails struct {
	ExecutionID  uuid.UUID        `json:"execution_id"`
	HogQL        string           `json:"hogql"`
	SQL          string           `json:"sql"`
	Limit        int              `json:"limit"`
	Offset       int              `json:"offset"`
	OwnLimit     bool             `json:"own_limit"`
	Columns      []string         `json:"columns"`
	Head         []byte           `json:"head"`
	Compile      time.Duration    `json:"compile"`
	Stats        clickhouse.Stats `json:"stats"`
	Insight      *peerInsight     `json:"insight,omitempty"`
	Over         bool             `json:"over"`
	Missing      *int             `json:"missing,omitempty"`
	Marks        string           `json:"marks"`
	Warnings     []byte           `json:"warnings,omitempty"`
	Probe        time.Duration    `json:"probe"`
	Renewal      *Renewal         `json:"renewal,omitempty"`
	Materialized time.Time        `json:"materialized,omitzero"`
	Zone         string           `json:"zone"`
	Buckets      Buckets          `json:"buckets"`
	Asked        bool             `json:"asked"`
	Version      int              `json:"version"`
}

// peerInsight is the format in which an insightAnswer is sent.
type peerInsight struct {
	Results     []byte        `json:"results"`
	Head        []byte        `json:"head,omitempty"`
	More        []byte        `json:"more,omitempty"`
	HasMore     *bool         `json:"has_more,omitempty"`
	Error       []byte        `json:"error,omitempty"`
	Dates       []byte        `json:"dates,omitempty"`
	NextRefresh time.Duration `json:"next_refresh"`
	Until       time.Time     `json:"until,omitzero"`
	Reversed    bool          `json:"reversed"`
}

// sendResult returns the answer to a request that arrived at a given time: the whole result, or a page of it.
func sendResult(got cache.Answer, key cache.Key, asked *PeerRequest, arrived time.Time, page *PeerPage, counted bool) peers.Answer {
	done, ok := got.Entry.Meta.(*Details)
	if !ok {
		return peers.Declined("it is no result")
	}
	digest := key.Digest()
	head, err := json.Marshal(peerHead{
		Nonce: asked.Nonce, Project: key.Project(), Key: hex.EncodeToString(digest[:]), Since: got.Entry.ComputedAt.Sub(arrived),
		Stored: got.Status.Cached() && got.Status != cache.Renewed, Renewed: got.Entry.Renewed, Counted: counted, Page: page, Details: done.sent(),
	})
	rows := got.Entry.Result
	if page != nil {
		rows = rows.Cut(page.Offset, page.Limit)
	}
	if err != nil || int64(len(head))+rows.Size() > peers.MaxAnswer {
		return peers.Declined("the result is too large to be sent")
	}
	body := binary.BigEndian.AppendUint32(make([]byte, 0, headLength+len(head)), uint32(len(head))) //nolint:gosec // less than MaxAnswer
	body, rest := rows.AppendForm(append(body, head...))
	return peers.Answer{Kind: peers.Result, Body: body, Rest: rest} // the rows are shared with the cache
}

// sent converts the details to the format in which they are sent.
func (d *Details) sent() peerDetails {
	out := peerDetails{
		ExecutionID: d.ExecutionID, HogQL: d.HogQL, SQL: d.SQL, Limit: d.Limit, Offset: d.Offset, OwnLimit: d.OwnLimit, Columns: d.Columns, Head: d.Head,
		Compile: d.Compile, Stats: d.Stats, Over: d.over, Missing: d.Missing, Marks: d.Marks, Warnings: d.Warnings, Probe: d.Probe, Renewal: d.Renewal,
		Materialized: d.Materialized, Zone: d.Zone, Buckets: d.Buckets, Asked: d.asked, Version: d.Version,
	}
	if a := d.Insight; a != nil {
		out.Insight = &peerInsight{
			Results: a.Results, Head: a.Head, More: a.More, HasMore: a.HasMore, Error: a.Error, Dates: a.Dates, NextRefresh: a.nextRefresh, Until: a.until,
			Reversed: a.reversed,
		}
	}
	return out
}

// details converts the details back. The basis of a result is not sent, so the next computation can't use it.
func (a *peerResult) details() *Details {
	in := &a.head.Details
	out := &Details{
		ExecutionID: in.ExecutionID, HogQL: in.HogQL, SQL: in.SQL, Limit: in.Limit, Offset: in.Offset, OwnLimit: in.OwnLimit, Columns: in.Columns, Head: in.Head,
		Compile: in.Compile, Stats: in.Stats, over: in.Over, Missing: in.Missing, Marks: in.Marks, Warnings: in.Warnings, Probe: in.Probe, Renewal: in.Renewal,
		Materialized: in.Materialized, Zone: in.Zone, Buckets: in.Buckets, asked: in.Asked, Version: in.Version,
	}
	if i := in.Insight; i != nil {
		out.Insight = &insightAnswer{
			Results: i.Results, Head: i.Head, More: i.More, HasMore: i.HasMore, Error: i.Error, Dates: i.Dates, nextRefresh: i.NextRefresh, until: i.Until,
			reversed: i.Reversed,
		}
	}
	return out
}

// peerResult is a result received from another server.
type peerResult struct {
	head peerHead
	rows *cache.Result
}

func (a *peerResult) page() bool { return a.head.Page != nil }

var errPeerResult = errors.New("malformed result, or not the one that was asked for")

// readPeerResult reads a result. It refuses one of another project, key or request.
func readPeerResult(data []byte, asked *PeerRequest) (*peerResult, error) {
	if len(data) < headLength {
		return nil, errPeerResult
	}
	length := int(binary.BigEndian.Uint32(data))
	data = data[headLength:]
	if length > len(data) {
		return nil, errPeerResult
	}
	a := new(peerResult)
	if json.Unmarshal(data[:length], &a.head) != nil {
		return nil, errPeerResult
	}
	h := &a.head
	if h.Nonce != asked.Nonce || h.Project != asked.Project || asked.Key != "" && h.Key != asked.Key || (asked.Key == "") != (h.Page != nil) {
		return nil, errPeerResult
	}
	var err error
	if a.rows, err = cache.ReadResult(data[length:], cache.Limits{Keep: MaxResultRows, MaxBytes: MaxResultBytes}); err != nil {
		return nil, err
	}
	d := &h.Details
	switch {
	case d.Insight == nil && len(d.Columns) != len(a.rows.Columns()), d.Buckets.Computed < 0, d.Buckets.Computed > d.Buckets.All, d.Limit < 0, d.Offset < 0:
		return nil, errPeerResult
	case h.Since > maxClaimedAge || h.Since < -maxClaimedAge:
		return nil, errPeerResult
	case h.Page == nil && a.rows.First() != 0:
		return nil, errPeerResult
	case h.Page != nil && (h.Page.Offset < a.rows.First() || h.Page.Limit < 1 || h.Page.Fresh < 0 || !areMarks(d.Marks)):
		return nil, errPeerResult
	}
	for _, took := range [...]time.Duration{d.Compile, d.Probe, d.Stats.Elapsed} {
		if took < 0 {
			return nil, errPeerResult
		}
	}
	return a, nil
}

// areMarks reports whether a text is the marks of a paged run: none, or a value for each variable.
func areMarks(text string) bool {
	var values map[string]json.RawMessage
	return text == "" || json.Unmarshal([]byte(text), &values) == nil
}

// maxClaimedAge bounds the age that a result may claim.
const maxClaimedAge = 366 * 24 * time.Hour
