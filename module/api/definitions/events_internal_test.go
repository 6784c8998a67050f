package definitions

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// TestOrdersCountOnce: a request can't make each comparison of a sort take as long as it is.
func TestOrdersCountOnce(t *testing.T) {
	r := httptest.NewRequest("GET", "/?ordering="+strings.Repeat("name,-created_at,nothing,", 10_000), nil)
	f, err := readEventFilter(new(api.Caller), &api.Input{Request: r})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.orders) != 2 || f.orders[0].descending || !f.orders[1].descending {
		t.Errorf("%d orders", len(f.orders))
	}
}
