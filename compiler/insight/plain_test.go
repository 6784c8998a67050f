package insight_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

func TestPlainValue(t *testing.T) {
	null := json.RawMessage("null")
	for _, tt := range []struct{ value, want any }{
		{"Chrome", "Chrome"},
		{insight.NullValue, null},
		{"", null},
		{insight.OtherValue, "Other"},
		{[]string{"Chrome", "", insight.OtherValue}, []any{"Chrome", null, "Other"}},
		{[]any{int64(7), insight.NullValue}, []any{int64(7), null}},
		{int64(7), int64(7)},
		{nil, nil},
	} {
		if diff := cmp.Diff(tt.want, insight.PlainValue(tt.value)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.value, diff)
		}
	}
	if got, want := insight.PlainLabel("a - "+insight.NullValue+"::"+insight.OtherValue), "a - null::Other"; got != want {
		t.Errorf("the label is %q, want %q", got, want)
	}
}
