package browser_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// commit is a line of the demo's events.
type commit struct {
	Event      string `json:"event"`
	Person     string `json:"distinct_id"`
	Timestamp  time.Time
	Properties struct {
		Component string `json:"component"`
	} `json:"properties"`
	line []byte
}

// commits returns the demo's events of these components.
func commits(t *testing.T, components ...string) []commit {
	t.Helper()
	file, err := os.Open(repository(t, "demo", "commits.ndjson.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []commit
	lines := bufio.NewScanner(plain)
	for lines.Scan() {
		var c commit
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(components, c.Properties.Component) {
			c.line = bytes.Clone(lines.Bytes())
			out = append(out, c)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// month is the endpoint's row for a month.
type month struct {
	start            time.Time
	commits, authors int
}

// activity returns the months of a component since a day, newest first: the expected answer of the README's endpoint.
func activity(t *testing.T, component, since string) []month {
	t.Helper()
	first, err := time.Parse(time.DateOnly, since)
	if err != nil {
		t.Fatal(err)
	}
	var months []month
	people := map[string]bool{} // of the month at the end
	for _, c := range slices.SortedFunc(slices.Values(commits(t, component)), func(a, b commit) int { return b.Timestamp.Compare(a.Timestamp) }) {
		if c.Event != "commit authored" || c.Timestamp.Before(first) {
			continue
		}
		if start := time.Date(c.Timestamp.Year(), c.Timestamp.Month(), 1, 0, 0, 0, 0, time.UTC); len(months) == 0 || !months[len(months)-1].start.Equal(start) {
			months = append(months, month{start: start})
			clear(people)
		}
		people[c.Person] = true
		months[len(months)-1].commits++
		months[len(months)-1].authors = len(people)
	}
	return months
}

// page returns the view of a dashboard that shows a page of months.
func page(customer string, months []month, number int) view {
	const size = 12
	shown := months[number*size : min(len(months), (number+1)*size)]
	v := view{Customer: customer, Bars: len(shown), Older: len(months) > (number+1)*size, Newer: number > 0}
	for _, m := range shown {
		v.Rows = append(v.Rows, []string{m.start.Format("Jan 06"), strconv.Itoa(m.commits), strconv.Itoa(m.authors)})
	}
	v.Status = v.Rows[len(v.Rows)-1][0] + " – " + v.Rows[0][0]
	return v
}
