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

func TestPlainRow(t *testing.T) {
	t.Parallel()
	if insight.PlainRow([]string{"event", "breakdown_values"}) != nil {
		t.Error("rows without breakdown values are changed")
	}
	plain := insight.PlainRow([]string{"event", "breakdown_value", "n", "breakdown_value"})
	for _, tt := range []struct{ row, want string }{
		{`["a", "", 1, "b"]`, `["a", "", 1, "b"]`},
		{
			`["` + insight.NullValue + `", "` + insight.NullValue + `", 18446744073709551615, "` + insight.OtherValue + `"]`,
			`["` + insight.NullValue + `",null,18446744073709551615,"Other"]`,
		},
		{`["a", ["` + insight.OtherValue + `", "x", ["` + insight.NullValue + `", 2]], null, null]`, `["a",["Other","x",[null,2]],null,null]`},
		{`["a", "is ` + insight.NullValue + `", 1.50, ""]`, `["a","is ` + insight.NullValue + `",1.50,""]`},
	} {
		got, err := plain([]byte(tt.row))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("row %s (-want +got):\n%s", tt.row, diff)
		}
	}
}
