package formats_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
)

// exported is a row of PostHog's batch exports of events.
type exported struct {
	UUID       string    `parquet:"uuid"`
	Event      string    `parquet:"event"`
	DistinctID string    `parquet:"distinct_id"`
	PersonID   *string   `parquet:"person_id,optional"`
	Properties *string   `parquet:"properties,optional,dict"`
	Person     *string   `parquet:"person_properties,optional"`
	Timestamp  time.Time `parquet:"timestamp,timestamp(microsecond)"`
	Inserted   time.Time `parquet:"_inserted_at,timestamp(microsecond)"`
	Nested     []string  `parquet:"nested"`
}

// parquetFile writes rows.
func parquetFile[T any](tb testing.TB, rows []T, options ...parquet.WriterOption) string {
	tb.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func exportedRows(n int) []exported {
	at := time.Date(2024, 1, 1, 10, 0, 0, 0, time.UTC)
	person, properties, was := id, `{"n":1,"$set":{"a":1}}`, `{"a":1}`
	rows := make([]exported, n)
	for i := range rows {
		rows[i] = exported{
			UUID: fmt.Sprintf("018c3a3b-1b1c-7000-8000-%012d", i), Event: "a", DistinctID: "x", Timestamp: at.Add(time.Duration(i) * time.Microsecond),
			Inserted: at, Nested: []string{"a", "b"}, PersonID: &person, Properties: &properties, Person: &was,
		}
		if i%2 == 1 {
			rows[i].PersonID, rows[i].Properties, rows[i].Person = nil, nil, nil
		}
	}
	return rows
}

func TestParquet(t *testing.T) {
	codecs := map[string]compress.Codec{
		"plain": &parquet.Uncompressed, "snappy": &parquet.Snappy, "gzip": &parquet.Gzip, "zstd": &parquet.Zstd, "brotli": &parquet.Brotli, "lz4": &parquet.Lz4Raw,
	}
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			in := parquetFile(t, exportedRows(1000), parquet.Compression(codec), parquet.MaxRowsPerRowGroup(300), parquet.PageBufferSize(4<<10))
			got, summary := read(t, strings.NewReader(in), formats.Options{})
			want := []string{
				`1 {"event":"a","distinct_id":"x","timestamp":"2024-01-01T10:00:00Z","uuid":"018c3a3b-1b1c-7000-8000-000000000000","person_id":"` + id + `","properties":{"n":1,"$set":{"a":1}}} was {"a":1}`,
				`2 {"event":"a","distinct_id":"x","timestamp":"2024-01-01T10:00:00.000001Z","uuid":"018c3a3b-1b1c-7000-8000-000000000001"}`,
			}
			if len(got) != 1000 {
				t.Fatalf("%d rows, the last %s", len(got), got[len(got)-1])
			}
			if diff := cmp.Diff(want, got[:2]); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if summary.Format != formats.Parquet || len(summary.Unknown) != 1 || !strings.HasPrefix(summary.Unknown[0].Name, "nested ") {
				t.Errorf("%+v", summary)
			}
		})
	}
}

// TestParquetTypes reads columns of other types, with other names.
func TestParquetTypes(t *testing.T) {
	type row struct {
		What string    `parquet:"what"`
		Who  int64     `parquet:"who"`
		When time.Time `parquet:"when,timestamp(millisecond)"`
		Yes  bool      `parquet:"yes"`
		F    float32   `parquet:"f"`
		D    float64   `parquet:"d"`
		I    int32     `parquet:"i"`
		U    uint32    `parquet:"u"`
		Day  int32     `parquet:"day,date"`
		ID   [16]byte  `parquet:"id,uuid"`
		Cent int64     `parquet:"cent,decimal(2:10)"`
	}
	rows := []row{{"buy", 7, time.Date(2024, 1, 1, 0, 0, 0, 5e6, time.UTC), true, 1.5, 2.5, -3, 1 << 31, 19723, [16]byte{1, 15: 2}, 1234}}
	mapping, err := formats.ParseMapping([]string{"what=event", "who=distinct_id", "when=timestamp", "f=-"})
	if err != nil {
		t.Fatal(err)
	}
	got, summary := read(t, strings.NewReader(parquetFile(t, rows)), formats.Options{Map: mapping})
	want := []string{`1 {"event":"buy","distinct_id":"7","timestamp":"2024-01-01T00:00:00.005Z","properties":{"yes":true,"d":2.5,"i":-3,"u":2147483648,` +
		`"day":"2024-01-01","id":"01000000-0000-0000-0000-000000000002","cent":12.34}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"yes", "d", "i", "u", "day", "id", "cent"}, summary.Columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// TestParquetDays reads days that are written as the numbers YYYYMMDD, also those that a missing value made floats.
func TestParquetDays(t *testing.T) {
	type row struct {
		Event string  `parquet:"event"`
		Who   string  `parquet:"distinct_id"`
		When  int32   `parquet:"timestamp"`
		In    float64 `parquet:"created_at"`
	}
	got, _ := read(t, strings.NewReader(parquetFile(t, []row{{"buy", "x", 20240115, 20240116}})), formats.Options{})
	want := []string{`1 {"event":"buy","distinct_id":"x","timestamp":"2024-01-15T00:00:00Z"} at 2024-01-16T00:00:00`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestParquetColumnTwice refuses columns that become the same property.
func TestParquetColumnTwice(t *testing.T) {
	type row struct {
		Event string `parquet:"event"`
		Who   string `parquet:"distinct_id"`
		When  string `parquet:"timestamp"`
		Plan  string `parquet:"plan"`
		Tier  string `parquet:"tier"`
	}
	got, _ := read(t, strings.NewReader(parquetFile(t, []row{{"buy", "x", "2024-01-15", "pro", "free"}})), formats.Options{Map: formats.Mapping{"tier": "properties.plan"}})
	want := []string{`end: reading the import: the columns "plan" and "tier" both become properties.plan: map one of them to another field, or to - to leave it out`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// withFooter is a Parquet file with a footer and nothing else.
func withFooter(footer string) string {
	return "PAR1" + footer + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1"
}

// TestDamagedParquet cuts files off, and makes them lie.
func TestDamagedParquet(t *testing.T) {
	good := parquetFile(t, exportedRows(100))
	footer := func(length uint32) string {
		return good[:len(good)-8] + string(binary.LittleEndian.AppendUint32(nil, length)) + "PAR1"
	}
	// A list of two billion schema elements.
	lying := withFooter("\x15\x02\x19\xfc\xff\xff\xff\xff\x07")
	columns := "\x19\xfc\xe0\xd4\x03" + strings.Repeat("\x3c\x00\x00", 60_000) + "\x00"
	tests := []struct{ name, in, want string }{
		{"cut off", good[:len(good)-100], "the Parquet file is cut off: it does not end with PAR1"},
		{"only a start", "PAR1", "the Parquet file is cut off: it is too short"},
		{"a footer that is too long", footer(1 << 31), "its footer of 2147483648 bytes does not fit"},
		{"a footer that is too short", footer(10), "the footer of the Parquet file is damaged"},
		{"a list that is too long", lying, "lists that are too long"},
		{"a footer that is too large", withFooter(strings.Repeat("x", 17<<20)), "its footer of 17825792 bytes does not fit"},
		// The field 15 is a list of one list of one list, and so on: the library would skip it by recursion.
		{"lists in lists", withFooter("\xf9" + strings.Repeat("\x19", 8<<20)), "nested too deeply"},
		{"structures in structures", withFooter(strings.Repeat("\xfc", 1<<20)), "nested too deeply"},
		{"maps in maps", withFooter("\xfb" + strings.Repeat("\x01\xbb", 1<<20)), "nested too deeply"},
		// Row groups of 60,000 columns, each a structure with one empty structure: no list is long, but all together are.
		{"many lists", withFooter("\x49\x9c" + strings.Repeat(columns, 9)), "lists that are too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := read(t, strings.NewReader(tt.in), formats.Options{})
			if len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("%.500q, want %q", got, tt.want)
			}
		})
	}
}

// bomb is a codec whose pages unfold to more than their headers say.
type bomb struct {
	compress.Codec
	page []byte // instead of each page, compressed
}

func (b *bomb) Encode([]byte, []byte) ([]byte, error) { return slices.Clone(b.page), nil }

// TestParquetBombs: a page that unfolds to more than its header says is refused before the memory for it is taken.
func TestParquetBombs(t *testing.T) {
	large := make([]byte, 64<<20)
	for name, codec := range map[string]compress.Codec{
		"snappy": &parquet.Snappy, "gzip": &parquet.Gzip, "zstd": &parquet.Zstd, "brotli": &parquet.Brotli, "lz4": &parquet.Lz4Raw,
	} {
		t.Run(name, func(t *testing.T) {
			page, err := codec.Encode(nil, large)
			if err != nil {
				t.Fatal(err)
			}
			for version := 1; version <= 2; version++ {
				in := parquetFile(t, exportedRows(10), parquet.Compression(&bomb{codec, page}), parquet.DataPageVersion(version))
				got, _ := read(t, strings.NewReader(in), formats.Options{})
				if len(got) != 1 || !strings.Contains(got[0], "bytes that its header announces") {
					t.Errorf("version %d: %.500q", version, got)
				}
			}
		})
	}
	t.Run("lz4 that is damaged", func(t *testing.T) { // the library takes more and more memory for it
		in := parquetFile(t, exportedRows(10), parquet.Compression(&bomb{&parquet.Lz4Raw, bytes.Repeat([]byte{0xff}, 100)}))
		got, _ := read(t, strings.NewReader(in), formats.Options{})
		if len(got) != 1 || !strings.Contains(got[0], "bytes that its header announces") {
			t.Errorf("%.500q", got)
		}
	})
}

// TestMutatedParquet changes bytes of a good file: each reads to an end, without a panic.
func TestMutatedParquet(t *testing.T) {
	good := parquetFile(t, exportedRows(3))
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		mutated := []byte(good)
		for range 1 + random.IntN(4) {
			mutated[random.IntN(len(mutated))] = byte(random.Uint32())
		}
		if got, _ := read(t, bytes.NewReader(mutated), formats.Options{Format: formats.Parquet}); len(got) > 10 {
			t.Errorf("seed %d: %d rows of 3", seed, len(got))
		}
	}
}
