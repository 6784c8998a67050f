package main

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

func TestChecked(t *testing.T) {
	refused := harness.Answer{Status: http.StatusBadRequest, Raw: []byte("no such thing")}
	tests := []struct {
		name   string
		answer harness.Answer
		err    error
		want   string
	}{
		{"as wanted", harness.Answer{Status: http.StatusOK}, nil, "<nil>"},
		{"another status", refused, nil, "asking: status 400, want 200: no such thing"},
		{"no answer", harness.Answer{}, errors.New("refused"), "asking: refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fmt.Sprint(checked("asking", tt.answer, tt.err, http.StatusOK)); got != tt.want {
				t.Errorf("checked gives %s, want %s", got, tt.want)
			}
		})
	}
}
