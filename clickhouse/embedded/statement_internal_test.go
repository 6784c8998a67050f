package embedded

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadStatement(t *testing.T) {
	for _, tt := range []struct{ name, text, first, format, rest string }{
		{"plain", "select 1", "SELECT", "", ""},
		{"format", "SELECT 1 FORMAT JSON", "SELECT", "JSON", "SELECT 1 "},
		{"format in lower case, then a semicolon", "select 1 format json;", "SELECT", "json", "select 1 ;"},
		{"format before settings", "SELECT 1 FORMAT JSON SETTINGS a = 1", "SELECT", "JSON", "SELECT 1  SETTINGS a = 1"},
		{"format after settings", "SELECT 1 SETTINGS a = 1 FORMAT JSON -- x", "SELECT", "JSON", "SELECT 1 SETTINGS a = 1  -- x"},
		{"format in a string", "SELECT 'FORMAT JSON'", "SELECT", "", ""},
		{"format in a comment", "SELECT 1 -- FORMAT JSON\n/* FORMAT CSV */", "SELECT", "", ""},
		{"format in a heredoc", "SELECT $x$ ' FORMAT JSON $x$", "SELECT", "", ""},
		{"format as a name", "SELECT a AS format FROM t", "SELECT", "", ""},
		{"format in a subquery", "SELECT * FROM (SELECT 1 FORMAT JSON)", "SELECT", "", ""},
		{"quotes within quotes", `SELECT 'a''b\' FORMAT CSV' FORMAT TSV`, "SELECT", "TSV", `SELECT 'a''b\' FORMAT CSV' `},
		{"insert", "INSERT INTO t (a, b) FORMAT JSONEachRow", "INSERT", "JSONEachRow", "INSERT INTO t (a, b) "},
		{"insert values", "INSERT INTO t (a) VALUES", "INSERT", "Values", "INSERT INTO t (a) "},
		{"insert with its rows", "INSERT INTO t VALUES (1)", "INSERT", "", ""},
		{"union in parentheses", "((SELECT 1) UNION ALL (SELECT 2))", "SELECT", "", ""},
		{"comments first", "/* a */ -- b\n # c\n explain syntax select 1", "EXPLAIN", "", ""},
		{"a quote that stays open", "SELECT 'abc FORMAT JSON", "SELECT", "", ""},
		{"a comment that stays open", "SELECT 1 /* FORMAT JSON", "SELECT", "", ""},
		{"a backslash at the end", `SELECT '\`, "SELECT", "", ""},
		{"nothing", "", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := readStatement(tt.text)
			rest := ""
			if s.format != "" {
				rest = tt.text[:s.formatStart] + tt.text[s.formatEnd:]
			}
			if diff := cmp.Diff([]string{tt.first, tt.format, tt.rest}, []string{s.first, s.format, rest}); diff != "" {
				t.Errorf("readStatement(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestInto(t *testing.T) {
	const into = "INTO OUTFILE '/dev/fd/7' APPEND FORMAT Parquet"
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "SELECT 1", "SELECT 1 " + into + " "},
		{"a semicolon", "SELECT 1 ; ", "SELECT 1 " + into + "  ; "},
		{"a comment at the end", "SELECT ';' -- ; x", "SELECT ';' " + into + "  -- ; x"},
		{"a format", "SELECT 1 FORMAT JSON -- x", "SELECT 1  " + into + "  -- x"},
		{"a format before settings", "SELECT 1 FORMAT JSON SETTINGS a = 1;", "SELECT 1  " + into + "  SETTINGS a = 1;"},
		{"settings", "SELECT 1 SETTINGS a = 1", "SELECT 1 SETTINGS a = 1 " + into + " "},
		{"parentheses", "(SELECT (1))", "(SELECT (1)) " + into + " "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := readStatement(tt.text)
			if diff := cmp.Diff(tt.want, s.into(tt.text, 7, "Parquet")); diff != "" {
				t.Errorf("into(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestKilledQuery(t *testing.T) {
	for _, tt := range []struct {
		text, id string
		wait, ok bool
	}{
		{"KILL QUERY WHERE query_id = 'a b'", "a b", false, true},
		{"kill query where query_id='x' sync;", "x", true, true},
		{"KILL QUERY WHERE query_id = 'x' ASYNC FORMAT JSON", "x", false, true},
		{"KILL QUERY WHERE query_id = 'x' OR 1", "", false, false},
		{"KILL QUERY WHERE query_id = 'it''s'", "", false, false},
		{`KILL QUERY WHERE query_id = 'it\'s'`, "", false, false},
		{"KILL QUERY WHERE query_id = 'x", "", false, false},
		{"KILL QUERY WHERE user = 'x'", "", false, false},
		{"KILL MUTATION WHERE query_id = 'x'", "", false, false},
		{"SELECT 1", "", false, false},
	} {
		s := readStatement(tt.text)
		id, wait, ok := s.killedQuery(tt.text)
		if id != tt.id || wait != tt.wait || ok != tt.ok {
			t.Errorf("%s: %q, %v, %v", tt.text, id, wait, ok)
		}
	}
}

func FuzzReadStatement(f *testing.F) {
	for _, seed := range []string{
		"SELECT 1 FORMAT JSON", "INSERT INTO t (a) VALUES", "$a$ x $a$", "'\\", "/*", "((", "`a``b`", "KILL QUERY WHERE query_id = 'x' SYNC", "\xff$",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := readStatement(text)
		end := 0
		for _, token := range s.tokens {
			if token.start < end || token.end <= token.start || token.end > len(text) || token.depth < 0 {
				t.Fatalf("token %+v after %d", token, end)
			}
			end = token.end
		}
		if s.format != "" && s.format != "Values" && !strings.HasSuffix(text[s.formatStart:s.formatEnd], s.format) {
			t.Errorf("format %q is not at %d to %d", s.format, s.formatStart, s.formatEnd)
		}
		s.killedQuery(text)
	})
}
