package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

func TestRequestID(t *testing.T) {
	tests := []struct {
		name, given string
		kept        bool
	}{
		{"the caller's own", "abc-123_~!", true},
		{"none", "", false},
		{"a long one", strings.Repeat("x", 128), true},
		{"too long", strings.Repeat("x", 129), false},
		{"with a space", "a b", false},
		{"with a line feed", "a\nX-Evil: 1", false},
		{"not ASCII", "é", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.Header["X-Request-Id"] = []string{tt.given}
			got := api.RequestID(r)
			if (got == tt.given) != tt.kept || !tt.kept && len(got) != 32 {
				t.Errorf("requestID is %q", got)
			}
			if !tt.kept && got == api.RequestID(r) {
				t.Error("two requests have one id")
			}
		})
	}
}
