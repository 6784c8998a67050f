package people

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// TestPagesOfEventsAreWhole: a page has all of its events, also if they take more than the records of other lists may.
func TestPagesOfEventsAreWhole(t *testing.T) {
	const large = 7 << 20
	tests := []struct {
		name     string
		sizes    []int // of the properties of each event
		streamed bool
	}{
		{"no events", nil, false},
		{"small events", []int{1, 1, 1}, false},
		{"large events", []int{large, large, large, large}, true},
		{"a large event at the end", []int{1, 3 * large}, false},
		{"small events after large ones", []int{3 * large, 1, pieceSize, 1, 1}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			page := eventPage{next: new("http://example.org/next")}
			var want []string
			for i, size := range tt.sizes {
				id := fmt.Sprint("event ", i)
				page.events = append(page.events, event{
					ID: id, Properties: json.RawMessage(`"` + strings.Repeat("x", size) + `"`), ElementsChain: `a:text="b"`,
				})
				want = append(want, id)
			}
			res := page.response()
			if got := res.Stream != nil; got != tt.streamed {
				t.Fatalf("streamed: %v, want %v", got, tt.streamed)
			}
			answer := httptest.NewRecorder()
			api.WriteAnswer(answer, httptest.NewRequest(http.MethodGet, "/", nil), new(api.Asked), res, nil)
			var got struct {
				Next    string
				Results []struct {
					ID         string
					Properties string
					Elements   []struct{ Text string }
				}
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
				t.Fatalf("%d: %v", answer.Code, err)
			}
			var ids []string
			for i, e := range got.Results {
				if ids = append(ids, e.ID); len(e.Properties) != tt.sizes[i] || len(e.Elements) != 1 || e.Elements[0].Text != "b" {
					t.Errorf("%s has %d bytes of properties and the elements %v", e.ID, len(e.Properties), e.Elements)
				}
			}
			if diff := cmp.Diff(want, ids); diff != "" || got.Next != "http://example.org/next" {
				t.Errorf("next is %q; events (-want +got):\n%s", got.Next, diff)
			}
			for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"} {
				if got := answer.Header().Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}
