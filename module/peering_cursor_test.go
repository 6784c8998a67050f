package module

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"net/http"
	"slices"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/pagecursor"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

// others is another server, whose answers a test chooses.
type others struct {
	named  error // instead of the server
	answer func(ctx context.Context, request []byte) (peers.Answer, error)
	ended  bool
	unread error // the registry does not say whether it has ended
}

func (others) Owner([32]byte) (nodes.Node, bool) { return nodes.Node{}, false }

func (o others) Named(_ context.Context, name string) (nodes.Node, error) {
	return nodes.Node{Name: name}, o.named
}

func (o others) Ended(context.Context, nodes.Node) (bool, error) { return o.ended, o.unread }

func (others) Others() (living, dead []nodes.Node) { return nil, nil }

func (o others) Ask(ctx context.Context, _ nodes.Node, request []byte) (peers.Answer, error) {
	a, err := o.answer(ctx, request)
	a.Body, a.Rest = append(a.Body, a.Rest...), nil // as received over a connection
	return a, err
}

// elsewhere returns a cursor as another process would have issued it.
func elsewhere(tb testing.TB, cursor string) string {
	tb.Helper()
	all, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		tb.Fatal(err)
	}
	all[0] ^= 1
	binary.BigEndian.PutUint32(all[len(all)-crc32.Size:], crc32.ChecksumIEEE(all[:len(all)-crc32.Size]))
	return base64.RawURLEncoding.EncodeToString(all)
}

// TestCursorOfAnotherServer follows a cursor that another server issued. Only that server can say that the page is gone.
func TestCursorOfAnotherServer(t *testing.T) {
	w, next := pagedWorld(t)
	foreign := elsewhere(t, next)
	gone := string(pagecursor.Cursor{Ref: cache.Ref{Hash: 1, Entry: 1 << 60}, Limit: 1}.Append(nil, w.CursorOwner(t, "mine")))
	changed := []byte(next)
	changed[40] ^= 1
	// its returns the other server's answer to one of its cursors.
	its := func(cursor string) func(context.Context, []byte) (peers.Answer, error) {
		return func(ctx context.Context, request []byte) (peers.Answer, error) {
			return w.rt.answerPeer(ctx, nodes.Node{}, bytes.Replace(request, []byte(foreign), []byte(cursor), 1), w.rt.newCatchUp()), nil
		}
	}
	// follows returns the page with another next cursor.
	follows := func(edit func(string) string) func(context.Context, []byte) (peers.Answer, error) {
		return func(ctx context.Context, request []byte) (peers.Answer, error) {
			answer, err := its(next)(ctx, request)
			answer.Body = editNext(t, answer.Body, edit)
			return answer, err
		}
	}
	fails := func(err error) func(context.Context, []byte) (peers.Answer, error) {
		return func(context.Context, []byte) (peers.Answer, error) { return peers.Answer{}, err }
	}
	declines := func(why string) func(context.Context, []byte) (peers.Answer, error) {
		return func(context.Context, []byte) (peers.Answer, error) { return peers.Declined(why), nil }
	}
	const (
		expired = "410 The rows that this cursor pages through are no longer kept. Begin again without a cursor."
		away    = "503 The server that holds this cursor's rows is not responding. Please try again later."
	)
	for _, tt := range []struct {
		name   string
		other  others
		want   string
		repeat string // Retry-After
	}{
		{"the page", others{answer: follows(func(its string) string { return elsewhere(t, its) })}, "[[3 row of acme] [4 row of acme]]", ""},
		{"a server that is gone", others{named: nodes.ErrGone}, expired, ""},
		{"rows that are not kept", others{answer: its(gone)}, expired, ""},
		{"a changed cursor", others{answer: its(string(changed))}, expired, ""},
		{"a cursor of a third server", others{answer: its(foreign)}, expired, ""},
		{"a silent server", others{answer: fails(peers.ErrSilent)}, away, "1"},
		{"a server that is new or not, while the registry is unavailable", others{named: errors.New("a test")}, away, "1"},
		{"a server that takes no questions", others{named: nodes.ErrNotAsked}, away, "1"},
		{"a server that ended", others{answer: fails(peers.ErrAbsent), ended: true}, expired, ""},
		{"a server that is not at its address, but writes its record", others{answer: fails(peers.ErrAbsent)}, away, "1"},
		{"a server that is not at its address, while the registry is unavailable", others{answer: fails(peers.ErrAbsent), unread: errors.New("a test")}, away, "1"},
		{"a silent server that stopped writing its record", others{answer: fails(peers.ErrSilent), ended: true}, away, "1"},
		{"an invalid next cursor", others{answer: follows(func(string) string { return `","x":"` })}, away, "1"},
		{"a next cursor of a third server", others{answer: its(next)}, away, "1"},
		{"a busy server", others{answer: declines("busy")}, away, "1"},
		{"an older registry", others{answer: func(ctx context.Context, request []byte) (peers.Answer, error) {
			var asked execution.PeerRequest
			if err := json.Unmarshal(request, &asked); err != nil {
				return peers.Answer{}, err
			}
			asked.Revision += 1000
			return w.rt.answerPeer(ctx, nodes.Node{}, jsontext.Append(nil, asked), w.rt.newCatchUp()), nil
		}}, away, "1"},
		{"an invalid failure", others{answer: func(context.Context, []byte) (peers.Answer, error) {
			return peers.Answer{Kind: peers.Failure, Body: []byte(`{"gone":true}`)}, nil
		}}, away, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.Peers = tt.other
			defer func() { w.Peers = nil }()
			got := w.send(t, http.MethodPost, apitest.MinePath, apitest.WithCursor(foreign, ""))
			if following, _ := apitest.FieldOf(t, got, "next_cursor").(string); got.Code == http.StatusOK && following[:10] != foreign[:10] {
				t.Errorf("the next cursor is %q, want one of the other server", following)
			}
			if out := apitest.OutcomeOf(t, got); out != tt.want || got.Header().Get("Retry-After") != tt.repeat {
				t.Errorf("%s, Retry-After %q; want %s, %q", out, got.Header().Get("Retry-After"), tt.want, tt.repeat)
			}
		})
	}
}

// editNext changes the next cursor in a page from another server.
func editNext(tb testing.TB, body []byte, edit func(string) string) []byte {
	tb.Helper()
	length := binary.BigEndian.Uint32(body)
	head := make(map[string]any)
	if err := json.Unmarshal(body[4:4+length], &head); err != nil {
		tb.Fatal(err)
	}
	page := head["page"].(map[string]any)
	page["next"] = edit(page["next"].(string))
	edited := jsontext.Append(nil, head)
	return slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(len(edited))), edited, body[4+length:])
}
