package diag_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

func TestErrorText(t *testing.T) {
	tests := []struct {
		name string
		in   *diag.Error
		want string
	}{
		{"with a place", diag.New(diag.QueryError, diag.Span{Start: 7, End: 11}, "Unable to resolve field: %s", "evnt"), "7:11: Unable to resolve field: evnt"},
		{"at the start", diag.New(diag.SyntaxError, diag.Span{Start: 0, End: 3}, "No"), "0:3: No"},
		{"with a field", diag.Field(diag.ParseError, "series.1.math", "Field required"), "series.1.math: Field required"},
		{"alone", diag.New(diag.HogQLError, diag.Span{}, "100%% wrong"), "100% wrong"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.in.Error()); diff != "" {
				t.Errorf("Error() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShown(t *testing.T) {
	long := strings.Repeat("ä", 60)
	for _, tt := range []struct {
		in   any
		want string
	}{
		{"-7d", "-7d"},
		{nil, "<nil>"},
		{json.Number("7"), "7"},
		{[]any{"a", true}, "[a true]"},
		{long, long},
		{long + "b", long + "…"},
		{"a\xffb", "a\uFFFDb"},
		{long + "\xff", long + "…"},
	} {
		if got := diag.Shown(tt.in); got != tt.want {
			t.Errorf("Shown(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestSpanTo(t *testing.T) {
	a, b, zero := diag.Span{Start: 2, End: 4}, diag.Span{Start: 6, End: 9}, diag.Span{}
	tests := []struct {
		name           string
		from, to, want diag.Span
	}{
		{"two places", a, b, diag.Span{Start: 2, End: 9}},
		{"from nowhere", zero, b, b},
		{"to nowhere", a, zero, a},
		{"nowhere", zero, zero, zero},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.from.To(tt.to); got != tt.want {
				t.Errorf("%v.To(%v) = %v, want %v", tt.from, tt.to, got, tt.want)
			}
		})
	}
}

func TestListSortsByPlace(t *testing.T) {
	var l diag.List
	if err := l.Err(); err != nil {
		t.Fatalf("an empty list gives %v", err)
	}
	l.Addf(diag.QueryError, diag.Span{Start: 9, End: 10}, "third")
	l.Addf(diag.SyntaxError, diag.Span{Start: 1, End: 2}, "first")
	l.Addf(diag.QueryError, diag.Span{Start: 1, End: 5}, "second")
	err := l.Err()
	if diff := cmp.Diff("1:2: first\n1:5: second\n9:10: third", err.Error()); diff != "" {
		t.Errorf("Err() (-want +got):\n%s", diff)
	}
	mistake, ok := errors.AsType[*diag.Error](fmt.Errorf("compiling: %w", err))
	if !ok || mistake.Detail != "first" || mistake.Code != diag.SyntaxError {
		t.Errorf("errors.As finds %v, want the first mistake", mistake)
	}
}

func TestListIsBounded(t *testing.T) {
	var l diag.List
	for i := range 1000 {
		if full := i >= 100; l.Full() != full {
			t.Fatalf("with %d mistakes, Full is %t", i, !full)
		}
		l.Addf(diag.QueryError, diag.Span{Start: i, End: i + 1}, "mistake")
	}
	all, ok := errors.AsType[diag.Errors](l.Err())
	if !ok || len(all) != 100 {
		t.Errorf("%d mistakes, want 100", len(all))
	}
}

func TestListShortensDetails(t *testing.T) {
	var l diag.List
	fits, long := strings.Repeat("a", 4096), "a"+strings.Repeat("ä", 4096)
	for i, detail := range []string{fits, long} {
		l.Addf(diag.QueryError, diag.Span{Start: i, End: i + 1}, "%s", detail)
	}
	all, _ := errors.AsType[diag.Errors](l.Err())
	if want := long[:4095] + "…"; len(all) != 2 || all[0].Detail != fits || all[1].Detail != want {
		t.Errorf("the details are %.100s", all)
	}
}

func TestLocate(t *testing.T) {
	const text = "select é,\n  ☃\n"
	tests := []struct {
		name   string
		offset int
		want   diag.Position
	}{
		{"start", 0, diag.Position{Line: 1, Column: 1}},
		{"behind a character of two bytes", 9, diag.Position{Line: 1, Column: 9}},
		{"the newline", 10, diag.Position{Line: 1, Column: 10}},
		{"second line", 11, diag.Position{Line: 2, Column: 1}},
		{"behind the snowman", 16, diag.Position{Line: 2, Column: 4}},
		{"end", len(text), diag.Position{Line: 3, Column: 1}},
		{"past the end", 99, diag.Position{Line: 3, Column: 1}},
		{"before the start", -1, diag.Position{Line: 1, Column: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := diag.Locate(text, tt.offset); got != tt.want {
				t.Errorf("Locate(%d) = %v, want %v", tt.offset, got, tt.want)
			}
		})
	}
}
