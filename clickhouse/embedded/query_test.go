//go:build linux || darwin

package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

func TestGreeting(t *testing.T) {
	c := connect(t, engine(t))
	v, err := c.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if v.Version.Major != 26 || v.Version.Minor != 7 {
		t.Errorf("version = %v, want 26.7", v.Version)
	}
	if v.Timezone.String() != "UTC" {
		t.Errorf("zone = %v, want UTC", v.Timezone)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	if got := value[string](t, c, t.Context(), "SELECT currentDatabase()"); got != embedded.Database {
		t.Errorf("current database = %q", got)
	}
}

func TestTypes(t *testing.T) {
	c := connect(t, engine(t))
	var (
		n      *int64
		name   string
		when   time.Time
		list   []string
		low    string
		pairs  map[string]uint32
		amount float64
	)
	row := c.QueryRow(t.Context(), `SELECT CAST(NULL, 'Nullable(Int64)'), 'é', toDateTime64('2024-02-03 04:05:06.789', 3, 'UTC'),
		['a', ''], toLowCardinality('x'), map('k', 7::UInt32), 1.5`)
	if err := row.Scan(&n, &name, &when, &list, &low, &pairs, &amount); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v, %v, %v, %v, %v, %v, %v", n, name, when.UTC(), list, low, pairs, amount)
	if want := "<nil>, é, 2024-02-03 04:05:06.789 +0000 UTC, [a ], x, map[k:7], 1.5"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	rows, err := c.Query(t.Context(), "SELECT number AS n, 'x' AS s FROM numbers(10) WHERE n > 100")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	if rows.Next() {
		t.Error("an empty result has a row")
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

func TestParameters(t *testing.T) {
	c := connect(t, engine(t))
	for name, want := range map[string]string{
		"empty":          "",
		"quote":          `' OR 1=1 --`,
		"quotes":         "'\"`''\\'",
		"backslash":      `\n is not a newline \`,
		"control":        "tab\tnewline\nreturn\rnul\x00end\x01\x1f\x7f",
		"null marker":    `\N`,
		"null word":      "NULL",
		"braces":         "{x:String} ?",
		"unicode":        "héllo 世界 🎈 \u2028",
		"url":            "a&b=c%20d+e#f;g",
		"comment":        "*/ x /*",
		"long":           strings.Repeat("0123456789abcdé\n", 1<<16),
		"invalid UTF-8":  "\xff\xfe",
		"format":         "1 FORMAT JSON",
		"statement end":  "x'; DROP TABLE y; --",
		"leading blanks": "  x\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := value[string](t, c, t.Context(), "SELECT {x:String}", clickhouse.Named("x", want))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the value changed (-want +got):\n%.500s", diff)
			}
		})
	}
	t.Run("other types", func(t *testing.T) {
		got := value[string](t, c, t.Context(), "SELECT toString(tuple({n:Int64}, {l:Array(String)}, {z:Nullable(String)}, {f:Float64}))",
			clickhouse.Named("n", -5), clickhouse.Named("l", []string{"a'b", "c\\d"}), clickhouse.Named("z", nil), clickhouse.Named("f", 0.1))
		if want := `(-5,['a\'b','c\\d'],NULL,0.1)`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("missing", func(t *testing.T) {
		_, err := ask[string](c, t.Context(), "SELECT {x:String}")
		if code(err) != 456 {
			t.Errorf("error = %v, want code 456", err)
		}
	})
	t.Run("of the wrong type", func(t *testing.T) {
		_, err := ask[int64](c, t.Context(), "SELECT {x:Int64}", clickhouse.Named("x", "1; SELECT 2"))
		if code(err) != 457 {
			t.Errorf("error = %v, want code 457", err)
		}
	})
}

// TestForm sends values that are too long for a URL in the body.
func TestForm(t *testing.T) {
	send := func(contentType, body string) string {
		t.Helper()
		u, err := url.Parse(engine(t).DSN())
		if err != nil {
			t.Fatal(err)
		}
		u.Path, u.RawQuery = "/", "default_format=TSVRaw&readonly=1&param_url=u"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", contentType)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.Itoa(res.StatusCode) + " " + string(answer)
	}
	form := func(fields ...string) (contentType, body string) {
		t.Helper()
		var b strings.Builder
		w := multipart.NewWriter(&b)
		for i := 0; i < len(fields); i += 2 {
			if err := w.WriteField(fields[i], fields[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return w.FormDataContentType(), b.String()
	}
	long := strings.Repeat("0123456789", 4<<20)
	got := send(form("query", "SELECT length({long:String}), {short:String}, {url:String}", "param_long", long, "param_short", `it's \\ \t`))
	if want := "200 41943040\tit's \\ \t\tu\n"; got != want {
		t.Errorf("a form with a long value: %.300q, want %q", got, want)
	}
	for name, tt := range map[string]struct{ contentType, body, want string }{
		"no boundary": {"multipart/form-data", "x", "400 Code: 36."},
		"cut off":     {"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nSELECT 1", "500 Code: 1002."},
		"empty":       {"multipart/form-data; boundary=b", "--b--\r\n", "400 Code: 62."},
		"a file": {
			"multipart/form-data; boundary=b",
			"--b\r\nContent-Disposition: form-data; name=\"t\"; filename=\"x\"\r\n\r\n1\r\n--b--\r\n", "501 Code: 48.",
		},
		"another field": {
			"multipart/form-data; boundary=b",
			"--b\r\nContent-Disposition: form-data; name=\"readonly\"\r\n\r\n0\r\n--b--\r\n", "501 Code: 48.",
		},
	} {
		if got := send(tt.contentType, tt.body); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %.300s, want %s", name, got, tt.want)
		}
	}
}

func TestSettings(t *testing.T) {
	c := connect(t, engine(t), func(o *clickhouse.Options) { o.MaxOpenConns, o.MaxIdleConns = 1, 1 })
	execute(t, c, "DROP TABLE IF EXISTS settings_test", "CREATE TABLE settings_test (team Int64, n Int64) ENGINE = MergeTree ORDER BY n",
		"INSERT INTO settings_test SELECT number % 2, number FROM numbers(10)")
	with := func(s clickhouse.Settings) context.Context {
		return clickhouse.Context(t.Context(), clickhouse.WithSettings(s))
	}
	const (
		sums  = "SELECT sum(n) FROM settings_test"
		probe = `SELECT toString((getSetting('readonly'), getSetting('max_execution_time'), getSetting('max_memory_usage'),
			getSetting('max_result_rows'), getSetting('transform_null_in'), getSetting('log_comment'), getSetting('additional_table_filters')))`
	)
	before := value[string](t, c, t.Context(), probe)

	filter := with(clickhouse.Settings{"additional_table_filters": "{'analytics.settings_test': 'team = 1'}"})
	if got := value[int64](t, c, filter, sums); got != 25 {
		t.Errorf("filtered sum = %d, want 25", got)
	}
	if got := value[int64](t, c, filter, "SELECT sum(n) FROM (SELECT a.n AS n FROM settings_test AS a JOIN settings_test AS b ON a.n = b.n)"); got != 25 {
		t.Errorf("filtered sum under a join = %d, want 25", got)
	}
	strict := with(clickhouse.Settings{"readonly": 1, "max_execution_time": 60, "additional_table_filters": "{'analytics.settings_test': 'team = 1'}"})
	if got := value[int64](t, c, strict, sums); got != 25 {
		t.Errorf("filtered sum while readonly is 1 = %d, want 25", got)
	}
	if err := c.Exec(strict, sums+" SETTINGS additional_table_filters = {}"); code(err) != 164 {
		t.Errorf("removing the filter in the text: %v, want code 164", err)
	}
	if got := value[int64](t, c, t.Context(), sums); got != 45 {
		t.Errorf("the next query's sum = %d, want 45", got)
	}

	comment := `{"team": 1, "note": "it's \\ --x=1"}` + "\n\tü"
	all := with(clickhouse.Settings{
		"readonly": 2, "max_execution_time": 7, "max_memory_usage": 123456789, "max_result_rows": 3, "transform_null_in": 1, "log_comment": comment,
	})
	if got := value[string](t, c, all, "SELECT getSetting('log_comment')"); got != comment {
		t.Errorf("log_comment = %q, want %q", got, comment)
	}
	if got := value[string](t, c, all, "SELECT toString((getSetting('readonly'), getSetting('max_execution_time'), getSetting('max_memory_usage')))"); got != "(2,7,123456789)" {
		t.Errorf("settings = %s", got)
	}

	for _, tt := range []struct {
		name, query string
		settings    clickhouse.Settings
		want        int32
	}{
		{"write while readonly", "INSERT INTO settings_test VALUES (1, 1)", clickhouse.Settings{"readonly": 2}, 164},
		{"create while readonly", "CREATE TABLE settings_other (a Int8) ENGINE = Memory", clickhouse.Settings{"readonly": 2}, 164},
		{"loosen readonly", "SET readonly = 0", clickhouse.Settings{"readonly": 2}, 164},
		{"loosen readonly in a clause", "SELECT 1 SETTINGS readonly = 0", clickhouse.Settings{"readonly": 2}, 164},
		{"change a setting while readonly is 1", "SELECT 1 SETTINGS max_threads = 1", clickhouse.Settings{"readonly": 1}, 164},
		{"two statements", "SELECT 1; SELECT 2", nil, 62},
		{"two statements, one hidden", "SELECT 1 /* ' */; DROP TABLE settings_test -- '", nil, 62},
		{"result rows", "SELECT number FROM numbers(4) SETTINGS max_block_size = 1", clickhouse.Settings{"max_result_rows": 3}, 396},
		{"execution time", "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))", clickhouse.Settings{"max_execution_time": 1}, 159},
		{"memory", "SELECT length(groupArray(number)) FROM numbers(100000000)", clickhouse.Settings{"max_memory_usage": 10_000_000}, 241},
		{"rows to read", "SELECT count() FROM settings_test WHERE n > 0", clickhouse.Settings{"max_rows_to_read": 5}, 158},
		{"unknown setting", "SELECT 1", clickhouse.Settings{"no_such_setting": 1}, 115},
		{"path as a setting", "SELECT 1", clickhouse.Settings{"path": "/tmp/x"}, 115},
		{"malformed value", "SELECT 1", clickhouse.Settings{"max_threads": "many"}, 27},
		{"malformed filter", sums, clickhouse.Settings{"additional_table_filters": "team = 1"}, 27},
		{"into a file", "SELECT 1 INTO OUTFILE '" + t.TempDir() + "/out'", nil, 48},
		{"from a file", "INSERT INTO settings_test FROM INFILE '/etc/hostname' FORMAT TSV", nil, 48},
		{"table function file", "SELECT * FROM file('/etc/hostname', 'LineAsString')", nil, 497},
		{"table function url", "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')", nil, 497},
		{"table of the file database", "SELECT * FROM default.`/etc/hostname`", nil, 497},
		{"insert into a file", "INSERT INTO FUNCTION file('/tmp/x', 'CSV', 'a Int8') SELECT 1", nil, 48},
		{"a user", "CREATE USER somebody", nil, 497},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := c.Exec(with(tt.settings), tt.query)
			if code(err) != tt.want {
				t.Errorf("error = %v, want code %d", err, tt.want)
			}
			if after := value[string](t, c, t.Context(), probe); after != before {
				t.Errorf("settings leak into the next query:\n%s\nbefore: %s", after, before)
			}
		})
	}
	if got := value[int64](t, c, t.Context(), sums); got != 45 {
		t.Errorf("after the refused queries the sum = %d, want 45", got)
	}

	// The effects of a statement on its session do not persist either.
	execute(t, c, "SET max_result_rows = 1", "USE system", "CREATE TEMPORARY TABLE passing (a Int8)")
	if after := value[string](t, c, t.Context(), probe); after != before {
		t.Errorf("SET persists: %s", after)
	}
	if got := value[string](t, c, t.Context(), "SELECT currentDatabase()"); got != embedded.Database {
		t.Errorf("USE persists: %s", got)
	}
	if err := c.Exec(t.Context(), "SELECT * FROM passing"); code(err) != 60 {
		t.Errorf("the temporary table persists: %v", err)
	}
}

func TestErrors(t *testing.T) {
	c := connect(t, engine(t))
	for _, tt := range []struct {
		name, query string
		status      int
		code        int32
		text        string
	}{
		{"syntax", "SELECT\n  1 +", 400, 62, "Syntax error: failed at position 13 (end of query) (line 2, col 6)"},
		{"unknown table", "SELECT * FROM nowhere", 404, 60, "Unknown table expression identifier 'nowhere'"},
		{"empty", "  ", 400, 62, "Empty query"},
		{"exit", "exit", 400, 62, "Syntax error"},
		{"unknown database", "SELECT * FROM nowhere.x", 404, 81, "Database nowhere does not exist"},
		{"division", "SELECT intDiv(1, 0)", 500, 153, "Division by zero"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := c.Exec(t.Context(), tt.query)
			var status *clickhouse.HTTPError
			if !errors.As(err, &status) || status.StatusCode != tt.status {
				t.Errorf("error = %v, want status %d", err, tt.status)
			}
			if code(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.text) {
				t.Errorf("error = %v, want code %d and %q", err, tt.code, tt.text)
			}
			if strings.Contains(fmt.Sprint(err), "formatQuery") || strings.Contains(fmt.Sprint(err), "/*") {
				t.Errorf("the error contains internal text: %v", err)
			}
		})
	}
}

// TestFormats compares streamed results with results that the engine returns whole.
func TestFormats(t *testing.T) {
	c := connect(t, engine(t))
	const query = "SELECT number AS `a\"\n,'b`, toString(number) || '\n\"' AS s, if(number % 3 = 0, NULL, number / 7) AS f FROM numbers(100000)"
	for _, format := range []string{
		"JSONCompactEachRowWithNamesAndTypes", "JSONCompactEachRowWithNames", "JSONCompactEachRow", "JSONEachRow", "JSONStringsEachRow",
		"CSV", "CSVWithNames", "CSVWithNamesAndTypes", "TSV", "TSVWithNames", "TabSeparatedWithNamesAndTypes", "TSVRaw", "TSVRawWithNames",
		"RowBinary", "RowBinaryWithNames", "RowBinaryWithNamesAndTypes", "TSKV", "JSON", "JSONCompact", "Values", "Parquet", "ArrowStream", "XML",
	} {
		t.Run(format, func(t *testing.T) {
			read := func(settings clickhouse.Settings) string {
				ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(settings))
				r, err := c.QueryFormat(ctx, format, query)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = r.Close() }()
				text, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			got, want := read(clickhouse.Settings{"max_threads": 1}), read(clickhouse.Settings{"max_threads": 1, "wait_end_of_query": 1})
			for _, mark := range []string{`"elapsed"`, "<elapsed>"} { // the elapsed time differs
				got, _, _ = strings.Cut(got, mark)
				want, _, _ = strings.Cut(want, mark)
			}
			if got != want || len(got) < 1000 {
				t.Errorf("streamed: %d bytes, whole: %d bytes; they differ", len(got), len(want))
			}
		})
	}
}

func TestQueryFormatRows(t *testing.T) {
	c := connect(t, engine(t))
	ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{
		"output_format_json_quote_64bit_integers": 0, "output_format_json_quote_denormals": 0,
	}))
	r, err := c.QueryFormat(ctx, "JSONCompactEachRowWithNamesAndTypes",
		"SELECT 18446744073709551615 AS a, nan AS b, NULL AS c, ['x\ny', 'é'] AS d, {v:String} AS e, toDateTime64('2024-01-02 03:04:05.5', 6, 'UTC') AS f",
		clickhouse.Named("v", "' OR 1=1 --"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `["a", "b", "c", "d", "e", "f"]
["UInt64", "Float64", "Nullable(Nothing)", "Array(String)", "String", "DateTime64(6, 'UTC')"]
[18446744073709551615, null, null, ["x\ny","é"], "' OR 1=1 --", "2024-01-02 03:04:05.500000"]
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// TestStreaming reads millions of rows and checks the child's memory.
func TestStreaming(t *testing.T) {
	for _, tt := range []struct {
		format string
		rows   int
		size   int64 // the minimum size
	}{
		{"JSONCompactEachRow", 10_000_000, 190 << 20},
		{"JSON", 10_000_000, 190 << 20},
		{"Parquet", 10_000_000, 10 << 20},
	} {
		t.Run(tt.format, func(t *testing.T) {
			e := engine(t)
			c := connect(t, e)
			value[uint8](t, c, t.Context(), "SELECT 1")
			before := residentMemory(t, e.PID())
			r, err := c.QueryFormat(t.Context(), tt.format, fmt.Sprintf("SELECT number, toString(number) FROM numbers(%d)", tt.rows))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			size, peak := int64(0), int64(0)
			for err == nil {
				var n int64
				n, err = io.CopyN(io.Discard, r, tt.size/20)
				size += n
				peak = max(peak, residentMemory(t, e.PID()))
			}
			if !errors.Is(err, io.EOF) || size < tt.size {
				t.Fatalf("%d bytes: %v", size, err)
			}
			if over := peak - before; over > 128<<20 {
				t.Errorf("the child took %d MiB for a streamed result", over>>20)
			}
		})
	}
}

// residentMemory returns a process's resident memory in bytes, or 0 if it is unknown.
func residentMemory(t *testing.T, pid int) int64 {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("no RssAnon for process %d", pid)
	return 0
}

func TestErrorInTheMiddle(t *testing.T) {
	c := connect(t, engine(t))
	const query = "SELECT number, throwIf(number = 3000000, 'enough') FROM numbers(4000000)"
	for _, format := range []string{"JSONCompactEachRowWithNamesAndTypes", "JSON", "Parquet"} {
		t.Run(format, func(t *testing.T) {
			r, err := c.QueryFormat(t.Context(), format, query)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			n, err := io.Copy(io.Discard, r)
			if code(err) != 395 || n < 1_000_000 {
				t.Errorf("after %d bytes: %v, want code 395 after more than a million", n, err)
			}
		})
	}
	t.Run("Native", func(t *testing.T) {
		rows, err := c.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		n := 0
		for rows.Next() {
			n++
		}
		if code(rows.Err()) != 395 || n == 0 {
			t.Errorf("after %d rows: %v, want code 395", n, rows.Err())
		}
	})
	t.Run("a plain client sees a broken answer", func(t *testing.T) {
		res, err := post(t, "", query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("reading the body: %v, want an unexpected end", err)
		}
		tag := res.Header.Get("X-ClickHouse-Exception-Tag")
		if tag == "" || !strings.Contains(string(body), "\r\n__exception__\r\n"+tag+"\r\nCode: 395. DB::Exception: enough") {
			t.Errorf("the body ends with %q", body[max(len(body)-300, 0):])
		}
	})
}

func TestConcurrentQueries(t *testing.T) {
	c := connect(t, engine(t))
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range 10 {
				want := strconv.Itoa(g*1000 + i)
				ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"log_comment": "c" + want}))
				got, err := ask[string](c, ctx, "SELECT concat({v:String}, getSetting('log_comment'), toString(sum(number))) FROM numbers({n:UInt64})",
					clickhouse.Named("v", want), clickhouse.Named("n", 1000+i))
				if full := want + "c" + want + strconv.Itoa((1000+i)*(999+i)/2); err != nil || got != full {
					t.Errorf("goroutine %d: %q, %v, want %q", g, got, err, full)
				}
			}
		})
	}
	wg.Wait()
}

func TestSummary(t *testing.T) {
	res, err := post(t, "default_format=JSONEachRow", "SELECT count() AS n FROM numbers(1000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var summary map[string]string
	if err := json.Unmarshal([]byte(res.Header.Get("X-ClickHouse-Summary")), &summary); err != nil {
		t.Fatal(err)
	}
	got := []string{
		string(body), res.Header.Get("Content-Type"), res.Header.Get("X-ClickHouse-Format"), res.Header.Get("X-ClickHouse-Timezone"),
		summary["read_rows"], summary["result_rows"],
	}
	want := []string{"{\"n\":1000}\n", "application/x-ndjson; charset=UTF-8", "JSONEachRow", "UTC", "1000", "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}
