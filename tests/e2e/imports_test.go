package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// moved is an event in a form independent of formats: who did what, when, with which plan, and how much was paid.
type moved struct {
	event, user, plan string
	at                time.Time
	paid              int
}

func movedEvents() []moved {
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	out := make([]moved, 300)
	for i := range out {
		out[i] = moved{[]string{"view", "buy"}[i%2], fmt.Sprintf("u%d", i%17), []string{"free", "pro"}[i%3%2], start.Add(time.Duration(i) * time.Hour), i}
	}
	return out
}

// personOf returns the person that exports name: users u0 and u1 are one.
func personOf(user string) string {
	n, _ := strconv.Atoi(user[1:])
	return fmt.Sprintf("018c3a3b-1b1c-7000-8000-%012d", max(n, 1))
}

// lines formats each event with a function.
func lines(write func(i int, m moved) string) []byte {
	var b bytes.Buffer
	for i, m := range movedEvents() {
		b.WriteString(write(i, m) + "\n")
	}
	return b.Bytes()
}

func stamp(m moved) string { return m.at.Format("2006-01-02 15:04:05.000000") }

type movedRow struct {
	Event      string    `parquet:"event"`
	DistinctID string    `parquet:"distinct_id"`
	PersonID   string    `parquet:"person_id"`
	Properties string    `parquet:"properties"`
	Timestamp  time.Time `parquet:"timestamp,timestamp(microsecond)"`
	UUID       string    `parquet:"uuid"`
}

func movedParquet(t *testing.T) []byte {
	t.Helper()
	var rows []movedRow
	for i, m := range movedEvents() {
		rows = append(rows, movedRow{m.event, m.user, personOf(m.user), fmt.Sprintf(`{"plan":%q,"paid":%d}`, m.plan, m.paid), m.at, eventID(i)})
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func eventID(i int) string { return fmt.Sprintf("018c3a3b-1b1c-7000-9000-%012d", i) }

// movedNumbers are figures of these events: for each event name and plan their number, the sum paid, and the first time.
func movedNumbers() []any {
	var out []any
	for _, event := range []string{"buy", "view"} {
		for _, plan := range []string{"free", "pro"} {
			count, paid, first := 0.0, 0.0, ""
			for _, m := range movedEvents() {
				if m.event != event || m.plan != plan {
					continue
				}
				if count++; first == "" {
					first = m.at.Format(time.RFC3339)
				}
				paid += float64(m.paid)
			}
			out = append(out, row(event, plan, count, paid, first))
		}
	}
	return out
}

// TestImportFormats imports the same events in each format: the figures equal those of the same events in our own format.
func TestImportFormats(t *testing.T) {
	own := lines(func(_ int, m moved) string {
		return fmt.Sprintf(`{"event":%q,"distinct_id":%q,"timestamp":%q,"properties":{"plan":%q,"paid":%d}}`, m.event, m.user, stamp(m), m.plan, m.paid)
	})
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(own); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, file string
		content    []byte
		people     float64
		flags      []string
	}{
		{"own", "a.ndjson", own, 17, nil},
		{"own, gzip", "a.ndjson.gz", packed.Bytes(), 17, nil},
		{"PostHog", "a.jsonl", lines(func(i int, m moved) string {
			return fmt.Sprintf(`{"uuid":%q,"event":%q,"distinct_id":%q,"timestamp":%q,"person_id":%q,"properties":"{\"plan\":\"%s\",\"paid\":%d}","team_id":3}`,
				eventID(i), m.event, m.user, stamp(m), personOf(m.user), m.plan, m.paid)
		}), 16, nil},
		{"PostHog, Parquet", "a.parquet", movedParquet(t), 16, nil},
		{"Mixpanel", "a.json", lines(func(i int, m moved) string {
			return fmt.Sprintf(`{"event":%q,"properties":{"time":%d,"distinct_id":%q,"$insert_id":"i%d","plan":%q,"paid":%d}}`, m.event, m.at.Unix(), m.user, i, m.plan, m.paid)
		}), 17, nil},
		{"Amplitude", "b.json", lines(func(i int, m moved) string {
			return fmt.Sprintf(`{"event_type":%q,"event_time":%q,"user_id":%q,"device_id":"d%s","uuid":%q,"event_properties":{"plan":%q,"paid":%d},"user_properties":{}}`,
				m.event, stamp(m), m.user, m.user, eventID(i), m.plan, m.paid)
		}), 17, nil},
		{"CSV", "a.csv", append([]byte("what;distinct_id;timestamp;plan;amount\n"), lines(func(_ int, m moved) string {
			return fmt.Sprintf("%s;%s;%d;%s;%d", m.event, m.user, m.at.Unix(), m.plan, m.paid)
		})...), 17, []string{"--map", "what=event", "--map", "amount=properties.paid"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newProject(t)
			file := filepath.Join(t.TempDir(), tt.file)
			if err := os.WriteFile(file, tt.content, 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"import", "--project", strconv.FormatInt(c.Project, 10), file}, tt.flags...)
			var rehearsed, report struct {
				Events, Duplicates int
				NewPeople          float64 `json:"new_people"`
				Unknown            []any   `json:"unknown_fields"`
			}
			server.MustCommand(t, &rehearsed, nil, append(args, "--dry-run")...)
			if diff := cmp.Diff([]any{row(0.0)}, c.Query(t, "select count() from events")); diff != "" {
				t.Fatalf("a dry run wrote (-want +got):\n%s", diff)
			}
			server.MustCommand(t, &report, nil, args...)
			if diff := cmp.Diff(rehearsed, report); diff != "" {
				t.Errorf("the import is not what the dry run said (-rehearsed +imported):\n%s", diff)
			}
			if report.Events != 300 || report.NewPeople != tt.people || len(report.Unknown) > 0 {
				t.Errorf("%+v", report)
			}
			server.MustCommand(t, &report, nil, args...)
			if report.Duplicates != 300 || report.NewPeople != 0 {
				t.Errorf("again: %+v", report)
			}
			got := c.Query(t, "select event, properties.plan, count(), sum(properties.paid), min(timestamp) from events group by 1, 2 order by 1, 2")
			if diff := cmp.Diff(movedNumbers(), got); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]any{row(tt.people)}, c.Query(t, "select count(distinct person_id) from events")); diff != "" {
				t.Errorf("people (-want +got):\n%s", diff)
			}
		})
	}
}

// TestImportPersonIDs: events keep the person that an export names, through merges, and in any order of files.
func TestImportPersonIDs(t *testing.T) {
	c := newProject(t)
	old, now := personOf("u7"), personOf("u8")
	event := func(id, person, day, properties string) string {
		return fmt.Sprintf(`{"event":"a","distinct_id":%q,"timestamp":"2024-01-%sT00:00:00Z","person_id":%q,"properties":{},"person_properties":%s}`+"\n", id, day, person, properties)
	}
	person := func(id, person string) string {
		return fmt.Sprintf(`{"team_id":1,"distinct_id":%q,"person_id":%q,"properties":{"plan":"last"},"created_at":"2023-05-01T00:00:00Z","is_deleted":false}`+"\n", id, person)
	}
	importLines(t, c, event("anon", old, "01", `{"plan":"first"}`)+event("user", now, "02", `{"plan":"second"}`)) // two people
	importLines(t, c, event("anon", now, "03", `{"plan":"third"}`))                                               // who become one
	importLines(t, c, event("anon", old, "01", `{"plan":"first"}`)+event("phone", now, "02", `{"plan":"second"}`))
	importLines(t, c, person("anon", now)+person("user", now)+person("phone", now))
	importLines(t, c, event("tablet", now, "04", `{"plan":"stale"}`)) // the properties in a person's own line take precedence
	if diff := cmp.Diff([]any{row(now, 5.0)}, c.Query(t, "select person_id, count() from events group by 1")); diff != "" {
		t.Errorf("people of events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{row(now, "last")}, c.Query(t, "select id, properties.plan from persons")); diff != "" {
		t.Errorf("people (-want +got):\n%s", diff)
	}
}

// TestImportMistakes checks messages and exit statuses.
func TestImportMistakes(t *testing.T) {
	c := newProject(t)
	project := strconv.FormatInt(c.Project, 10)
	var cut bytes.Buffer
	w := gzip.NewWriter(&cut)
	if _, err := w.Write([]byte(strings.Repeat(threeLines, 2000))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, in, want string
		flags          []string
		fails          bool
	}{
		{"a field that is misspelled", strings.ReplaceAll(threeLines, "properties", "propertes"), "propertes: 3 lines (did you mean properties?)", nil, false},
		{"a byte order mark", "\xef\xbb\xbf" + threeLines, "imported 3 events (0 already existed)", nil, false},
		{"XML", "<?xml?>", "the file looks like an XML document; an import takes NDJSON", nil, true},
		{"an unknown format", threeLines, "(want one of ndjson, posthog", []string{"--format", "xml"}, true},
		{"a column that is mapped to nothing", threeLines, "is no field that a column can become", []string{"--map", "a=b"}, true},
		{"cut off", string(cut.Bytes()[:cut.Len()/2]), "as if the file were cut off", nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, err := server.Command(stringReader(tt.in), append([]string{"import", "--project", project, "-"}, tt.flags...)...)
			if (err != nil) != tt.fails || !strings.Contains(stderr, tt.want) {
				t.Errorf("%v: %s, want %q", err, stderr, tt.want)
			}
		})
	}
}

type overHTTP struct {
	ID, Status, Error string
	Report            struct {
		Events, Duplicates int
	}
}

// settledImport waits for an import to end.
func settledImport(t *testing.T, c *harness.Client, id string) (one overHTTP) {
	t.Helper()
	for range 600 {
		answer := c.Do(t, "GET", "imports/"+id+"/", nil)
		if err := json.Unmarshal(answer.Raw, &one); err != nil {
			t.Fatalf("%v: %s", err, answer.Raw)
		}
		if one.Status != "waiting" && one.Status != "running" {
			return one
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the import does not end: %+v", one)
	return one
}

// TestImportOverHTTP follows imports from the upload to the figures, and checks that projects are kept apart.
func TestImportOverHTTP(t *testing.T) {
	ours, theirs := newProject(t), newProject(t)
	send := func(query string, body any) overHTTP {
		var one overHTTP
		answer := ours.Do(t, "POST", "imports/"+query, body)
		if err := json.Unmarshal(answer.Raw, &one); err != nil || answer.Status != 201 {
			t.Fatalf("%d %s", answer.Status, answer.Raw)
		}
		return one
	}
	dry := settledImport(t, ours, send("?dry_run=true", threeLines).ID)
	if dry.Status != "completed" || dry.Report.Events != 3 {
		t.Errorf("%+v", dry)
	}
	if diff := cmp.Diff([]any{row(0.0)}, ours.Query(t, "select count() from events")); diff != "" {
		t.Fatalf("a dry run wrote (-want +got):\n%s", diff)
	}
	one := send("", threeLines)
	if got := settledImport(t, ours, one.ID); got.Status != "completed" || got.Report.Events != 3 {
		t.Errorf("%+v", got)
	}
	if got := settledImport(t, ours, send("?filename=a.parquet", movedParquet(t)).ID); got.Status != "completed" || got.Report.Events != 300 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]any{row(303.0)}, ours.Query(t, "select count() from events")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := settledImport(t, ours, send("", "<a/>").ID); got.Status != "failed" || !strings.Contains(got.Error, "an XML document") {
		t.Errorf("%+v", got)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if answer := theirs.Do(t, method, "imports/"+one.ID+"/", nil); answer.Status != 404 {
			t.Errorf("%s of another project's import: %d %s", method, answer.Status, answer.Raw)
		}
	}
	if answer := theirs.Do(t, "GET", "imports/", nil); !strings.Contains(string(answer.Raw), `"count":0`) {
		t.Errorf("another project's list: %s", answer.Raw)
	}
	for query, want := range map[string]string{"?format=xml": "unknown format", "?map=a": "does not map a column", "?dry_run=perhaps": "boolean", "?dryrun=1": "not permitted"} {
		if answer := ours.Do(t, "POST", "imports/"+query, threeLines); answer.Status != 400 || !strings.Contains(string(answer.Raw), want) {
			t.Errorf("%s: %d %s", query, answer.Status, answer.Raw)
		}
	}
	if answer := ours.Do(t, "DELETE", "imports/"+one.ID+"/", nil); answer.Status != 204 {
		t.Errorf("%d %s", answer.Status, answer.Raw)
	}
	if answer := ours.Do(t, "GET", "imports/"+one.ID+"/", nil); answer.Status != 404 {
		t.Errorf("%d %s", answer.Status, answer.Raw)
	}
}
