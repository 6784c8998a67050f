package clickhouse_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/block"
	"github.com/caddy-analytics/caddy-analytics/internal/chjson"
)

// randomJSON makes JSON values like those of events.
type randomJSON struct {
	*rand.Rand
	b []byte
}

var hardTexts = []string{
	"", "a", "2024-01-02", "2024-01-02T03:04:05Z", "12", "1.5", "true", "null", "ä€😀", "a\x00b", "line\nline\ttab", `quo"te\slash/`, "</script>", "\u2028", "{}", "[1]",
	strings.Repeat("long ", 100),
}

func (r *randomJSON) text() {
	r.b = chjson.AppendString(r.b, hardTexts[r.IntN(len(hardTexts))])
}

func (r *randomJSON) number() {
	switch r.IntN(8) {
	case 0:
		r.b = strconv.AppendInt(r.b, r.Int64()-r.Int64(), 10)
	case 1:
		r.b = strconv.AppendUint(r.b, r.Uint64(), 10)
	case 2:
		r.b = strconv.AppendFloat(r.b, math.Float64frombits(r.Uint64()&^(1<<62)), 'g', -1, 64)
	case 3:
		r.b = strconv.AppendFloat(r.b, r.Float64()*1e6, 'f', r.IntN(20), 64)
	case 4:
		r.b = append(r.b, []string{
			"0", "-0", "-0.0", "0.0", "1e3", "1E+3", "1e-400", "1.0", "-1.50", "9223372036854775807", "9223372036854775808", "18446744073709551615", "1e308",
			"999999999999999999", "1000000000000000000", "-9223372036854775808", "0e0", "5e-324", "123456789012345678901234567890.5",
		}[r.IntN(19)]...)
	default:
		r.b = strconv.AppendInt(r.b, int64(r.IntN(2000)-1000), 10)
	}
}

func (r *randomJSON) scalar() {
	switch r.IntN(7) {
	case 0, 1, 2:
		r.text()
	case 3, 4:
		r.number()
	case 5:
		r.b = strconv.AppendBool(r.b, r.IntN(2) == 0)
	case 6:
		r.b = append(r.b, "null"...)
	}
}

func (r *randomJSON) array(depth int) {
	r.b = append(r.b, '[')
	same := r.IntN(4)
	for i := range r.IntN(4) {
		if i > 0 {
			r.b = append(r.b, ',')
		}
		switch {
		case r.IntN(8) == 0:
			r.b = append(r.b, "null"...)
		case same == 0:
			r.text()
		case same == 1:
			r.number()
		case same == 2:
			r.b = strconv.AppendBool(r.b, r.IntN(2) == 0)
		default:
			r.value(depth + 1)
		}
	}
	r.b = append(r.b, ']')
}

func (r *randomJSON) value(depth int) {
	switch n := r.IntN(12); {
	case n < 2 && depth < 3:
		r.object(depth + 1)
	case n < 4 && depth < 3:
		r.array(depth)
	default:
		r.scalar()
	}
}

var keys = []string{"a", "b", "$c", "d.e", "d", "e", "d%2Ee", "ä", "sp ace", "quo\"te", "x\\y", "n\nl", "a b.c", "0", "1", "a.", ".a", "size0", "null", "`a`", "a^b"}

func (r *randomJSON) object(depth int) {
	r.b = append(r.b, '{')
	taken := map[string]bool{}
	for range r.IntN(8) {
		key := keys[r.IntN(len(keys))]
		if taken[key] {
			continue
		}
		if len(taken) > 0 {
			r.b = append(r.b, ',')
		}
		taken[key] = true
		r.b = append(chjson.AppendString(r.b, key), ':')
		r.value(depth)
	}
	r.b = append(r.b, '}')
}

// TestBlockIsLikeText inserts random JSON values in our own encoding: paths, types and values are those that the engine gives each text when it
// parses it alone. Within a block, the engine's types also depend on earlier rows: after 1.5, 2 is a Float64 too.
func TestBlockIsLikeText(t *testing.T) {
	t.Parallel()
	c := client(t)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := randomJSON{Rand: rand.New(rand.NewPCG(seed, 1))}
	compared := 0
	for round := range 20 {
		var objects []string
		for range 500 {
			r.b = nil
			r.object(0)
			objects = append(objects, string(r.b))
		}
		typ := []string{"JSON(max_dynamic_paths=256)", "JSON(max_dynamic_paths=16)", "JSON", "JSON(max_dynamic_paths=0)"}[round%4]
		ours, text := readBack(t, c, typ, objects), readAlone(t, c, objects)
		rows, ok := block.New([]block.Column{{Name: "j", Type: typ}})
		if !ok {
			t.Fatalf("%s is unknown", typ)
		}
		for i := range ours {
			before := rows.Texts()
			if !rows.Append([]any{objects[i]}) {
				t.Fatalf("%s is not taken in", objects[i])
			}
			if rows.Texts() > before {
				continue
			}
			compared++
			if ours[i] != text[i] {
				t.Fatalf("round %d, %s, object %s\n ours %s\n text %s", round, typ, objects[i], ours[i], text[i])
			}
		}
	}
	if compared < 2000 {
		t.Errorf("only %d objects were compared", compared)
	}
}

// asText selects what the engine stores of a JSON value.
const asText = "toString(j) || toString(arrayMap(k -> (k, JSONAllPathsWithTypes(j)[k]), arraySort(mapKeys(JSONAllPathsWithTypes(j)))))"

// readBack inserts objects into a table, and returns what the engine stores of each.
func readBack(t *testing.T, c *clickhouse.Client, typ string, objects []string) []string {
	t.Helper()
	name := table(t, c, "n Int64, j "+typ)
	insertObjects(t, c, name, typ, objects)
	if parts := ask(t, c, 1, "SELECT count() FROM system.parts WHERE active AND table = '"+name+"'"); !slices.Equal(parts, []string{"[1]"}) {
		t.Errorf("an insert made %v parts", parts)
	}
	return ask(t, c, 1, "SELECT n, "+asText+" FROM "+name+" ORDER BY n")
}

// readAlone returns what the engine stores of each object if its types do not depend on earlier rows, as they do for paths with columns of their own.
func readAlone(t *testing.T, c *clickhouse.Client, objects []string) []string {
	t.Helper()
	texts, typed := table(t, c, "n Int64, j String"), table(t, c, "n Int64, j JSON(max_dynamic_paths=0)")
	insertObjects(t, c, texts, "String", objects)
	statement(t, c, "INSERT INTO "+typed+" SELECT n, j FROM "+texts+" SETTINGS "+strings.Join(clickhouse.JSONSettings(), ", "))
	return ask(t, c, 1, "SELECT n, "+asText+" FROM "+typed+" ORDER BY n")
}

func insertObjects(t *testing.T, c *clickhouse.Client, name, typ string, objects []string) {
	t.Helper()
	err := c.Insert(t.Context(), clickhouse.Batch{
		Table: name, Token: "t", Columns: []clickhouse.Column{{Name: "n", Type: "Int64"}, {Name: "j", Type: typ}},
		Rows: func(yield func([]any) bool) {
			for i, object := range objects {
				if !yield([]any{int64(i), object}) {
					return
				}
			}
		},
	})
	if err != nil {
		t.Fatalf("inserting: %v", err)
	}
}

// table creates a table for one test, and returns its name.
func table(t *testing.T, c *clickhouse.Client, columns string) string {
	t.Helper()
	name := "t" + strings.ReplaceAll(uuid.NewString(), "-", "")
	statement(t, c, "CREATE TABLE "+name+" ("+columns+") ENGINE = MergeTree ORDER BY n")
	t.Cleanup(func() { _ = c.Exec(context.WithoutCancel(t.Context()), "DROP TABLE "+name) })
	return name
}

func statement(t *testing.T, c *clickhouse.Client, sql string) {
	t.Helper()
	if err := c.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}
