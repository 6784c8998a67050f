package cohorts

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

const someID = "01890a5d-ac96-774b-bcce-b302099a8057"

func TestReadCSV(t *testing.T) {
	const nobody = "CSV file names nobody: there is no valid person ID, distinct ID or email address below its heading."
	for _, tt := range []struct {
		name, in string
		by       clickhouse.Naming
		want     []string
		mistake  string
	}{
		{"distinct ids without a heading", "u1\nu2\n\n u1 \n", clickhouse.ByDistinctID, []string{"u1", "u2"}, ""},
		{"a heading that is a distinct id too", "distinct_id\nu1\n", clickhouse.ByDistinctID, []string{"distinct_id", "u1"}, ""},
		{"person ids", "Person .id\n" + someID + "\nx\n", clickhouse.ByPersonID, []string{someID}, ""},
		{"a heading with a dash", "PERSON-ID\n" + someID, clickhouse.ByPersonID, []string{someID}, ""},
		{"emails", " E-Mail \na@b.c\n", clickhouse.ByProperty("E-Mail"), []string{"a@b.c"}, ""},
		{"a column among others", "name,distinct-id\nAnn,a1\nshort\n,\nBob, b1 \n", clickhouse.ByDistinctID, []string{"a1", "b1"}, ""},
		{"person ids before all others", "email,distinct_id,person_id\na@b.c,u1," + someID + "\n", clickhouse.ByPersonID, []string{someID}, ""},
		{"one cell among blank ones", ",u1,\n,u2\n", clickhouse.ByDistinctID, []string{"u1", "u2"}, ""},
		{"a blank first row", ",\nu1,\n", clickhouse.ByDistinctID, []string{"u1"}, ""},
		{"a mark of UTF-8", "\ufeffemail\na@b.c\n", clickhouse.ByProperty("email"), []string{"a@b.c"}, ""},
		{"a quoted cell", "name,Email\n\"A, B\",\"a@b.c\"\n", clickhouse.ByProperty("Email"), []string{"a@b.c"}, ""},
		{"nobody", "email\n", clickhouse.Naming{}, nil, nobody},
		{"nobody with an id", "name,person_id\nAnn,5\nBob\n,\n", clickhouse.Naming{}, nil, nobody},
		{"nothing", "\n\n", clickhouse.Naming{}, nil, "CSV file is empty. Please upload a CSV file with at least one row of data."},
		{"no UTF-8", "u\xff", clickhouse.Naming{}, nil, "CSV file must be encoded in UTF-8."},
		{
			"no column that names people", "a,b\n1,2\n",
			clickhouse.Naming{},
			nil,
			"Multi-column CSV must contain at least one column with a supported ID header: person_id, distinct_id or email. Found: a, b",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readCSV([]byte(tt.in))
			if refused, ok := errors.AsType[*api.Error](err); ok != (tt.mistake != "") || ok && (refused.Detail != tt.mistake || refused.Attr != "csv") {
				t.Fatalf("mistake: %v, want %q", err, tt.mistake)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tt.want, got.names); diff != "" || got.by != tt.by {
				t.Errorf("names by %v, want %v (-want +got):\n%s", got.by, tt.by, diff)
			}
		})
	}
}

// TestLongCSV reads files with as many people as there can be, in more rows, and with one more.
func TestLongCSV(t *testing.T) {
	var b strings.Builder
	for n := range maxListed {
		fmt.Fprintf(&b, "%d\n", n)
	}
	b.WriteString("0\n1\n")
	got, err := readCSV([]byte(b.String()))
	if err != nil || len(got.names) != maxListed {
		t.Errorf("%d names, %v", len(got.names), err)
	}
	b.WriteString("one more\n")
	_, err = readCSV([]byte(b.String()))
	if refused, ok := errors.AsType[*api.Error](err); !ok || refused.Detail != "CSV file lists more than 500000 people." || refused.Attr != "csv" {
		t.Errorf("one more: %v", err)
	}
}

// FuzzReadCSV: whatever a file contains, it is refused, or lists each person once, by valid ids.
func FuzzReadCSV(f *testing.F) {
	for _, seed := range []string{"u1\nu2", "person_id\n" + someID, "name,email\n\"A, \"\"B\",a@b.c\n", "a,b\n1,2", "\"", ",,,\n", "\ufeff\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := readCSV(text)
		if err != nil {
			if _, ok := errors.AsType[*api.Error](err); !ok {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		seen := map[string]bool{}
		for _, name := range got.names {
			if name == "" || seen[name] {
				t.Fatalf("%q names %q", text, got.names)
			}
			seen[name] = true
			if _, err := uuid.Parse(name); got.by == clickhouse.ByPersonID && err != nil {
				t.Fatalf("%q: %q is no id", text, name)
			}
		}
	})
}
