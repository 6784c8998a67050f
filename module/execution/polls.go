package execution

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

// PeerPoll asks the other servers about the runs with an id, or about imports over HTTP: each server only knows those that began on it.
type PeerPoll struct {
	ID         string `json:"id"`
	Progress   bool   `json:"progress,omitempty"` // include the progress of a run
	Cancel     bool   `json:"cancel,omitempty"`
	QueuedOnly bool   `json:"queued_only,omitempty"` // see Runs.Cancel
	// Insights reports that the caller asks with the right to read insights.
	Insights bool `json:"insights,omitempty"`
	// Imports asks about an import instead of runs; without an ID, about all of the project's imports.
	Imports bool `json:"imports,omitempty"`
}

// Polled is a server's answer to a poll. It is sent as the length of its JSON in 4 bytes, the JSON, and the body.
type Polled struct {
	Nonce     string    `json:"nonce"` // of the request
	Project   int64     `json:"project"`
	Status    int       `json:"status,omitempty"` // of the answer to the caller that polls, which is Body; 0 if there is no run. For imports Body is an array
	Cancelled Cancelled `json:"cancelled"`
	Body      []byte    `json:"-"`
}

// longestPoll bounds how long other servers are asked. It is longer than any of them waits for its registry to be up to date.
const longestPoll = 2500 * time.Millisecond

// Poll asks all other servers at once and calls take with their answers, one at a time, until it returns true. It reports whether all living servers
// have answered. Servers that seem dead are asked too, since one that can't reach the registry may still run something.
func (e *Executor) Poll(ctx context.Context, c *Caller, poll PeerPoll, take func(*Polled) (enough bool)) (all bool) {
	if e.Peers == nil {
		return true
	}
	living, dead := e.Peers.Others()
	ctx, cancel := context.WithTimeout(ctx, longestPoll)
	defer cancel()
	answers := make(chan *Polled) // nil for none
	ask := func(n nodes.Node, needed bool) {
		answer := e.pollOne(ctx, c, n, poll)
		if answer == nil && !needed {
			answer = new(Polled)
		}
		select {
		case answers <- answer:
		case <-ctx.Done(): // nobody waits
		}
	}
	for _, n := range living {
		go ask(n, true)
	}
	for _, n := range dead {
		go ask(n, false)
	}
	all = true
	for range len(living) + len(dead) {
		select {
		case answer := <-answers:
			if answer == nil {
				all = false
			} else if take(answer) {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
	return all
}

// pollOne asks one server; nil if it does not answer.
func (e *Executor) pollOne(ctx context.Context, c *Caller, n nodes.Node, poll PeerPoll) *Polled {
	request := PeerRequestOf(c, Recipe{})
	request.Poll = &poll
	data, err := json.Marshal(request)
	if err != nil {
		return nil
	}
	got, err := e.Peers.Ask(ctx, n, data)
	if err != nil || got.Kind != peers.Result {
		return nil
	}
	return readPolled(got.Body, request)
}

// CancelEverywhere cancels everything that has an id, on this server and on all others: see Runs.Cancel. It reports whether all living servers have
// answered.
func (e *Executor) CancelEverywhere(ctx context.Context, c *Caller, poll PeerPoll) (found Cancelled, all bool) {
	poll.Cancel = true
	found = e.Runs.Cancel(c.Project.ID, poll.ID, poll.QueuedOnly)
	all = e.Poll(ctx, c, poll, func(other *Polled) bool {
		found.Stopped += other.Cancelled.Stopped
		found.Forgotten += other.Cancelled.Forgotten
		found.Left += other.Cancelled.Left
		return false
	})
	return found, all
}

// Any reports whether a cancel found anything.
func (c Cancelled) Any() bool { return c.Stopped+c.Forgotten+c.Left > 0 }

// Answer encodes the answer for the server that asked.
func (p *Polled) Answer(asked *PeerRequest) peers.Answer {
	p.Nonce, p.Project = asked.Nonce, asked.Project
	head, err := json.Marshal(p)
	if err != nil {
		return peers.Declined("the answer can't be sent")
	}
	body := binary.BigEndian.AppendUint32(make([]byte, 0, headLength+len(head)+len(p.Body)), uint32(len(head))) //nolint:gosec // a few dozen bytes
	return peers.Answer{Kind: peers.Result, Body: append(append(body, head...), p.Body...)}
}

// readPolled reads an answer; nil if it is not one to the question.
func readPolled(data []byte, asked *PeerRequest) *Polled {
	if len(data) < headLength {
		return nil
	}
	length := int(binary.BigEndian.Uint32(data))
	data = data[headLength:]
	p := new(Polled)
	if length > len(data) || json.Unmarshal(data[:length], p) != nil {
		return nil
	}
	if c := p.Cancelled; p.Nonce != asked.Nonce || p.Project != asked.Project || min(c.Stopped, c.Forgotten, c.Left) < 0 {
		return nil
	}
	if p.Body = data[length:]; p.Status != 0 && !isAnswerTo(asked, p.Body) || p.Status == 0 && len(p.Body) > 0 {
		return nil
	}
	return p
}

// isAnswerTo reports whether a body is about the run or the imports that were asked about.
func isAnswerTo(asked *PeerRequest, body []byte) bool {
	if asked.Poll.Imports {
		var all []struct {
			ID      string `json:"id"`
			Project int64  `json:"project"`
		}
		if json.Unmarshal(body, &all) != nil {
			return false
		}
		for _, one := range all {
			if one.Project != asked.Project || one.ID == "" || asked.Poll.ID != "" && one.ID != asked.Poll.ID {
				return false
			}
		}
		return true
	}
	var in struct {
		Status struct {
			ID      string `json:"id"`
			Project int64  `json:"team_id"`
		} `json:"query_status"`
	}
	return json.Unmarshal(body, &in) == nil && in.Status.ID == asked.Poll.ID && in.Status.Project == asked.Project
}
