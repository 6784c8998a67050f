package clickhouse

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// heldRows keeps what it receives.
type heldRows struct{ texts []string }

func (r *heldRows) Columns(columns []Column) error {
	r.texts = append(r.texts, fmt.Sprint(columns))
	return nil
}

func (r *heldRows) Row(json []byte) error {
	if string(json) == "[bad]" {
		return errors.New("a bad row")
	}
	r.texts = append(r.texts, string(json))
	return nil
}

// TestHeld: the beginning of a result can be dropped until more than the limit has arrived, and the sink gets each row of the last try once.
func TestHeld(t *testing.T) {
	long := "[" + strings.Repeat("1", heldBytes) + "]"
	for _, tt := range []struct {
		name    string
		again   bool
		first   []string // rows of the failing try
		repeats bool
		second  []string
		want    []string
	}{
		{"nothing came", false, nil, true, []string{"[1]"}, []string{"[{a UInt8}]", "[1]"}},
		{"a few rows", false, []string{"[1]", "[2]"}, true, []string{"[3]", "[4]"}, []string{"[{a UInt8}]", "[3]", "[4]"}},
		{"more than is kept", false, []string{"[1]", long}, false, nil, []string{"[{a UInt8}]", "[1]", long}},
		{"a sink that begins anew", true, []string{"[1]", long}, true, []string{"[2]"}, []string{"[{a UInt8}]", "[2]"}},
		{"no rows", false, []string{"[1]"}, true, nil, []string{"[{a UInt8}]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var to heldRows
			h := &held{to: &to}
			if tt.again {
				h.again = func() bool {
					to.texts = nil
					return true
				}
			}
			send := func(rows []string) {
				if err := h.Columns([]Column{{"a", "UInt8"}}); err != nil {
					t.Fatal(err)
				}
				for _, row := range rows {
					if err := h.Row([]byte(row)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if tt.first != nil {
				send(tt.first)
			}
			if got := h.restart(); got != tt.repeats {
				t.Fatalf("restart() = %t", got)
			}
			if tt.repeats {
				send(tt.second)
				if err := h.flush(); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, to.texts); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
	h := &held{to: &heldRows{}}
	if err := errors.Join(h.Columns(nil), h.Row([]byte("[bad]"))); err != nil {
		t.Fatal(err)
	}
	if err := h.flush(); err == nil {
		t.Error("the sink's error is lost")
	}
}
