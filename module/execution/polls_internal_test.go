package execution

import (
	"bytes"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

// TestReadPolled reads what other servers might say of a run that was asked about.
func TestReadPolled(t *testing.T) {
	asked := &PeerRequest{Nonce: strings.Repeat("a", 2*nonceBytes), Project: 3, Poll: &PeerPoll{ID: "x"}}
	const body = `{"query_status":{"id":"x","team_id":3,"results":[1]}}`
	answer := func(r Polled, by PeerRequest) []byte {
		got := r.Answer(&by)
		if got.Kind != peers.Result {
			t.Fatalf("%d %s", got.Kind, got.Body)
		}
		return got.Body
	}
	otherNonce, otherProject := *asked, *asked
	otherNonce.Nonce, otherProject.Project = strings.Repeat("b", 2*nonceBytes), 4
	good := answer(Polled{Status: 200, Body: []byte(body)}, *asked)
	tests := []struct {
		name string
		data []byte
		want bool
	}{
		{"a run", good, true},
		{"no run", answer(Polled{}, *asked), true},
		{"a cancel", answer(Polled{Cancelled: Cancelled{Stopped: 1}}, *asked), true},
		{"a negative number", answer(Polled{Cancelled: Cancelled{Left: -1}}, *asked), false},
		{"to another request", answer(Polled{Status: 200, Body: []byte(body)}, otherNonce), false},
		{"of another project", answer(Polled{Status: 200, Body: []byte(body)}, otherProject), false},
		{"with a run of another project", answer(Polled{Status: 200, Body: bytes.Replace([]byte(body), []byte("3"), []byte("4"), 1)}, *asked), false},
		{"with another run", answer(Polled{Status: 200, Body: bytes.Replace([]byte(body), []byte("x"), []byte("y"), 1)}, *asked), false},
		{"with what is no JSON", answer(Polled{Status: 200, Body: append([]byte(body), '}')}, *asked), false},
		{"a run without a status", answer(Polled{Body: []byte(body)}, *asked), false},
		{"a status without a run", answer(Polled{Status: 200}, *asked), false},
		{"nothing", nil, false},
		{"less than its length", good[:20], false},
		{"no head", append([]byte{0, 0, 0, 0}, body...), false},
		{"a longer head than there is", append([]byte{255, 255, 255, 255}, body...), false},
	}
	for _, tt := range tests {
		got := readPolled(tt.data, asked)
		if (got != nil) != tt.want {
			t.Errorf("%s: read %t", tt.name, got != nil)
		}
		if got != nil && got.Status != 0 && string(got.Body) != body {
			t.Errorf("%s: %s", tt.name, got.Body)
		}
	}
}

// TestReadPolledImports reads what other servers might say of imports.
func TestReadPolledImports(t *testing.T) {
	const one, other = `{"id":"x","project":3}`, `{"id":"y","project":3}`
	for _, tt := range []struct {
		name, id, body string
		want           bool
	}{
		{"the import", "x", "[" + one + "]", true},
		{"another import", "x", "[" + other + "]", false},
		{"another import too", "x", "[" + one + "," + other + "]", false},
		{"all imports", "", "[" + one + "," + other + "]", true},
		{"an import of another project", "", `[{"id":"x","project":4}]`, false},
		{"an import without a name", "", `[{"project":3}]`, false},
		{"no import", "", `[null]`, false},
		{"no list", "x", one, false},
	} {
		asked := &PeerRequest{Nonce: strings.Repeat("a", 2*nonceBytes), Project: 3, Poll: &PeerPoll{ID: tt.id, Imports: true}}
		answer := (&Polled{Status: 200, Body: []byte(tt.body)}).Answer(asked)
		if got := readPolled(answer.Body, asked); (got != nil) != tt.want {
			t.Errorf("%s: read %t", tt.name, got != nil)
		}
	}
}
