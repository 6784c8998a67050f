package rows_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/rows"
)

func TestKeys(t *testing.T) {
	tests := []struct {
		name          string
		columns, want []string
	}{
		{"unlike", []string{"a", "b"}, []string{"a", "b"}},
		{"alike", []string{"a", "a", "a"}, []string{"a", "a_2", "a_3"}},
		{"the number is taken", []string{"a", "a", "a_2"}, []string{"a", "a_3", "a_2"}},
		{"the number is taken twice", []string{"a_2", "a_2", "a", "a"}, []string{"a_2", "a_2_2", "a", "a_3"}},
		{"no name", []string{"", ""}, []string{"", "_2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, rows.Keys(tt.columns)); diff != "" {
				t.Errorf("Keys(%q) (-want +got):\n%s", tt.columns, diff)
			}
		})
	}
}

// TestManyKeys: as many columns of one name as a result can have.
func TestManyKeys(t *testing.T) {
	columns := slices.Repeat([]string{"a", "b"}, 10_000)
	columns[19_999] = "a_7"
	keys := rows.Keys(columns)
	seen := make(map[string]bool)
	for _, key := range keys {
		seen[key] = true
	}
	got := []string{keys[0], keys[2], keys[10], keys[12], keys[19_998], keys[19_999]}
	if diff := cmp.Diff([]string{"a", "a_2", "a_6", "a_8", "a_10001", "a_7"}, got); diff != "" || len(seen) != len(columns) {
		t.Errorf("%d of %d keys differ, some of which are (-want +got):\n%s", len(seen), len(columns), diff)
	}
}

func TestForms(t *testing.T) {
	tests := []struct {
		name, row, object, csv string
	}{
		{"plain", `[1, "x", null]`, `{"a":1,"b":"x","a_2":null}`, "1,x,\r\n"},
		{"nested", `[[1,"],"], {"k":[1, 2]}, -1.5e300]`, `{"a":[1,"],"],"b":{"k":[1, 2]},"a_2":-1.5e300}`, `"[1,""],""]","{""k"":[1, 2]}",-1.5e300` + "\r\n"},
		{"escapes", `["\"a\\", "", "é\u2028\n"]`, `{"a":"\"a\\","b":"","a_2":"é\u2028\n"}`, "\"\"\"a\\\",\"\",\"é\u2028\n\"\r\n"},
		{"blanks", `[" x ", "a b", true]`, `{"a":" x ","b":"a b","a_2":true}`, "\" x \",a b,true\r\n"},
	}
	columns := []string{"a", "b", "a"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object, err := rows.NewObjects(columns).Append(nil, []byte(tt.row))
			if err != nil || string(object) != tt.object {
				t.Errorf("object: %s, %v, want %s", object, err, tt.object)
			}
			line, err := rows.AppendCSV(nil, []byte(tt.row), len(columns))
			if err != nil || string(line) != tt.csv {
				t.Errorf("CSV: %q, %v, want %q", line, err, tt.csv)
			}
		})
	}
	if got := string(rows.AppendCSVHeader(nil, []string{"n", `a"b`, ""})); got != "n,\"a\"\"b\",\"\"\r\n" {
		t.Errorf("header: %q", got)
	}
	for _, row := range []string{"", "[", "[]", "[1, 2]", "[1, 2, 3, 4]", "[1, 2, 3", `[1, 2, "3]`, "[1, , 3]", "1, 2, 3]", "[1, 2, 3]]"} {
		if got, err := rows.NewObjects(columns).Append(nil, []byte(row)); !errors.Is(err, rows.ErrMalformed) {
			t.Errorf("%q as an object: %s, %v", row, got, err)
		}
		if got, err := rows.AppendCSV(nil, []byte(row), len(columns)); !errors.Is(err, rows.ErrMalformed) {
			t.Errorf("%q as CSV: %q, %v", row, got, err)
		}
	}
}

// FuzzRow compares both formats of any row with what the standard library reads from them.
func FuzzRow(f *testing.F) {
	for _, row := range []string{`[1, "x", null]`, `[[1,"],"], {"k":[1, 2]}, ""]`, `["\"a\\", "\r\n", "é\u2028"]`, `["", " ", ","]`, `[1]`} {
		f.Add([]byte(row))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		var cells []json.RawMessage
		if len(row) > 1<<12 || json.Unmarshal(row, &cells) != nil || len(cells) == 0 || bytes.ContainsAny(row, "\t\r\n") || row[0] != '[' || row[len(row)-1] != ']' {
			return // not as the database writes rows
		}
		columns := make([]string, len(cells))
		object, err := rows.NewObjects(columns).Append(nil, row)
		if err != nil {
			t.Fatalf("%s as an object: %v", row, err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(object, &members); err != nil {
			t.Fatalf("%s as an object is %s: %v", row, object, err)
		}
		line, err := rows.AppendCSV(nil, row, len(cells))
		if err != nil {
			t.Fatalf("%s as CSV: %v", row, err)
		}
		reader := csv.NewReader(bytes.NewReader(line))
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) && len(cells) == 1 { // an empty line: one NULL
			fields, err = []string{""}, nil
		}
		if err != nil || len(fields) != len(cells) {
			t.Fatalf("%s as CSV is %q, which reads as %q, %v", row, line, fields, err)
		}
		for i, key := range rows.Keys(columns) {
			if !bytes.Equal(members[key], cells[i]) {
				t.Errorf("%s: member %s of %s", row, key, object)
			}
			want := string(cells[i])
			switch want[0] {
			case '"':
				if err := json.Unmarshal(cells[i], &want); err != nil {
					t.Fatal(err)
				}
				want = string(bytes.ReplaceAll([]byte(want), []byte("\r\n"), []byte("\n"))) // as the reader does
			case 'n':
				want = ""
			}
			if fields[i] != want {
				t.Errorf("%s: field %d of %q is %q, want %q", row, i, line, fields[i], want)
			}
		}
	})
}
