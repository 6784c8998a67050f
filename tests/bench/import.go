package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// importBench imports page views of the past half year into a new project.
type importBench struct{ events int }

// importPeople is the number of people in the events. Each identifies itself after its first event.
const importPeople = 100_000

func (b *importBench) measure(folder string) (goals []goal, err error) {
	client, err := open(folder, "import")
	if err != nil {
		return nil, err
	}
	server := client.Server
	defer func() { err = errors.Join(err, server.Stop()) }()
	idle, err := server.Rest()
	if err != nil {
		return nil, err
	}
	cpu, err := server.ProcessorTime()
	if err != nil {
		return nil, err
	}
	lines, out := io.Pipe()
	go func() { _ = out.CloseWithError(b.write(out)) }()
	began := time.Now()
	if _, stderr, err := server.Command(lines, "import", "--project", strconv.FormatInt(client.Project, 10), "-"); err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr)
	}
	took := time.Since(began)
	after, err := server.ProcessorTime()
	if err != nil {
		return nil, err
	}
	peak, err := server.Peak()
	if err != nil {
		return nil, err
	}
	memory := peak.Sub(idle)
	fmt.Printf("Import of %d page views, the engine on the same machine\n\n", b.events)
	fmt.Printf("%10s %12s %10s %10s\n", "events/s", "cpu us/event", "server MB", "engine MB")
	fmt.Printf("%10.0f %12.1f %10.0f %10.0f\n\n", float64(b.events)/took.Seconds(), float64((after-cpu).Microseconds())/float64(b.events),
		float64(memory.Server)/1e6, float64(memory.Engine)/1e6)
	return nil, nil
}

// write writes the lines in order of time.
func (b *importBench) write(to io.Writer) error {
	out := bufio.NewWriterSize(to, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	known := make([]bool, importPeople)
	start := time.Now().AddDate(0, -6, 0).UTC()
	step := time.Since(start) / time.Duration(b.events)
	var line []byte
	for n := range b.events {
		share := random.Float64()
		user := int(importPeople * share * share * share)
		at := start.Add(time.Duration(n) * step).Format(time.RFC3339Nano)
		line = fmt.Appendf(line[:0], pageview, uuid.NewString(), user, at, random.IntN(500), []string{"free", "pro", "team"}[user%3], random.IntN(1000), true)
		if !known[user] {
			known[user] = true
			line = fmt.Appendf(line, "\n"+`{"event":"$identify","uuid":"%s","distinct_id":"user-%d","timestamp":"%s","properties":{"$anon_distinct_id":"anon-%[2]d",`+
				`"$set":{"email":"user%[2]d@example.com"}}}`, uuid.NewString(), user, at)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}
