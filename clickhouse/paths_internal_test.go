package clickhouse

import (
	"encoding/json"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// FuzzReadPath: a row about a path is refused, or read as the kinds of all its types.
func FuzzReadPath(f *testing.F) {
	for _, row := range []string{`["a",0,["String"]]`, `["a",1,[]]`, `["a%2Eb",0,["Int64","Array(Dynamic)"]]`, `["a","x",[]]`, `["a",0,{}]`, `["",0,[1]]`} {
		f.Add([]byte(row))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		if !json.Valid(row) { // rows always are
			return
		}
		c := &collector{columns: 3, row: func(cells []Cell) error {
			p, err := readPath(cells)
			if err == nil && p.Kinds&^(physical.AllKinds|physical.Earlier) != 0 {
				t.Errorf("%q: %b", row, p.Kinds)
			}
			return err
		}}
		_ = c.Row(row)
	})
}
