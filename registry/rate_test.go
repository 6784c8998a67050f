package registry_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestRate(t *testing.T) {
	for text, want := range map[string]registry.Rate{
		"240/m": {Queries: 240, Per: time.Minute}, "20/s": {Queries: 20, Per: time.Second}, "5/h": {Queries: 5, Per: time.Hour},
		"1000000000/s": {Queries: 1_000_000_000, Per: time.Second},
	} {
		var got registry.Rate
		if err := json.Unmarshal([]byte(`"`+text+`"`), &got); err != nil || got != want || got.IsZero() {
			t.Errorf("%s reads as %v, %v", text, got, err)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != `"`+text+`"` {
			t.Errorf("%s is written as %s, %v", text, back, err)
		}
	}
	for _, text := range []string{"", "240", "/m", "0/m", "-1/m", "240/d", "1e3/m", "1000000001/h", " 1/m", "1/m/m"} {
		if got, err := registry.ParseRate(text); err == nil || !got.IsZero() {
			t.Errorf("%q is taken for the rate %v", text, got)
		}
	}
	if text := (registry.Rate{}).String(); text != "" {
		t.Errorf("no rate is written as %q", text)
	}
}

// FuzzRate reads anything. A rate that is read is written so that it reads back the same, and has time between its queries.
func FuzzRate(f *testing.F) {
	for _, seed := range []string{"240/m", "1/s", "1000000000/h", "+1/m", "01/h", "", "/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := registry.ParseRate(text)
		if err != nil {
			return
		}
		if again, err := registry.ParseRate(r.String()); err != nil || again != r {
			t.Errorf("%q reads as %v, and that as %v, %v", text, r, again, err)
		}
		if r.Per/time.Duration(r.Queries) <= 0 {
			t.Errorf("%q leaves no time between queries", text)
		}
	})
}
