package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// captureBench sends events like SDKs, and follows them to ClickHouse.
type captureBench struct {
	seconds int // how long each load is sent
	rate    int // events per second in paced loads
	size    int // of the batches sent; 0 for all sizes
}

// captureLoads are the loads. Paced ones are sent at a fixed rate, the others as fast as the server accepts them. A third of the 10,000 users are
// identified; the others are anonymous and create no person, as is posthog-js's default. In the last load, every user has a person.
var captureLoads = []captureLoad{{name: "batches of 1", size: 1}, {name: "batches of 10", size: 10}, {name: "batches of 100", size: 100, paced: true}, {name: "100, all known", size: 100, paced: true, known: true}}

type captureLoad struct {
	name         string
	size         int
	paced, known bool
}

const captureUsers = 10_000

// captureConnections is the number of concurrent requests.
const captureConnections = 8

// captured is the result of one load.
type captured struct {
	events  int
	took    time.Duration // until the last acknowledgement
	visible time.Duration // until the last event was visible
	acks    []time.Duration
	lag     time.Duration // the longest seen
	cpu     time.Duration
	disk    int64
	memory  harness.Memory
}

func (b *captureBench) measure(folder string) (goals []goal, err error) {
	fmt.Printf("Capture, %d connections, %d s each, the engine on the same machine\n\n", captureConnections, b.seconds)
	fmt.Printf("%-15s %10s %10s %9s %9s %9s %12s %12s %10s %10s\n", "", "events/s", "visible/s", "ack p50", "ack p99", "lag", "cpu us/event", "disk B/event",
		"server MB", "engine MB")
	for _, load := range captureLoads {
		if b.size != 0 && b.size != load.size {
			continue
		}
		c, err := b.run(folder, load)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", load.name, err)
		}
		slices.Sort(c.acks)
		p50, p99 := c.acks[len(c.acks)/2], c.acks[len(c.acks)*99/100]
		n := float64(c.events)
		fmt.Printf("%-15s %10.0f %10.0f %9s %9s %9s %12.1f %12.0f %10.0f %10.0f\n", load.name, n/c.took.Seconds(), n/c.visible.Seconds(), p50.Round(10*time.Microsecond),
			p99.Round(10*time.Microsecond), c.lag.Round(time.Millisecond), float64(c.cpu.Microseconds())/n, float64(c.disk)/n, float64(c.memory.Server)/1e6,
			float64(c.memory.Engine)/1e6)
		if load.paced && !load.known {
			rate := n / c.took.Seconds()
			goals = append(goals,
				goal{what: "captured events a second, batches of 100", against: "sent at that rate", goal: fmt.Sprintf(">= %d", b.rate), measured: fmt.Sprintf("%.0f", rate), missed: rate < 0.99*float64(b.rate)},
				goal{what: "acknowledgement at that rate, p99", goal: "<= 50ms", measured: p99.Round(100 * time.Microsecond).String(), missed: p99 > 50*time.Millisecond},
				goal{what: "lag at that rate, longest", goal: "<= 2s", measured: c.lag.Round(time.Millisecond).String(), missed: c.lag > 2*time.Second})
		}
	}
	fmt.Println()
	return goals, nil
}

// run sends a load to a new server.
func (b *captureBench) run(folder string, load captureLoad) (c captured, err error) {
	client, err := open(folder, fmt.Sprintf("capture-%d-%t", load.size, load.known))
	if err != nil {
		return c, err
	}
	server := client.Server
	defer func() { err = errors.Join(err, server.Stop()) }()
	var tokens struct {
		Tokens []struct{ Token string }
	}
	if err := server.Ask(fmt.Sprintf("/analytics/projects/%d/tokens", client.Project), nil, &tokens); err != nil {
		return c, err
	}
	idle, err := server.Rest()
	if err != nil {
		return c, err
	}
	cpu, err := server.ProcessorTime()
	if err != nil {
		return c, err
	}
	start := time.Now()
	stop := start.Add(time.Duration(b.seconds) * time.Second)
	lag := make(chan time.Duration, 1)
	done := make(chan struct{})
	go func() { lag <- watchCapture(server, done) }()
	var all sync.WaitGroup
	senders := make([]captureSender, captureConnections)
	for i := range senders {
		senders[i] = captureSender{captureLoad: load, url: server.URL + "/batch/", token: tokens.Tokens[0].Token}
		if load.paced {
			senders[i].every = time.Duration(float64(load.size*captureConnections) / float64(b.rate) * float64(time.Second))
		}
		all.Go(func() { senders[i].sendUntil(stop) })
	}
	all.Wait()
	c.took = time.Since(start)
	for i := range senders {
		err = errors.Join(err, senders[i].err)
		c.events += len(senders[i].acks) * load.size
		c.acks = append(c.acks, senders[i].acks...)
	}
	if err != nil {
		return c, err
	}
	err = awaitCaptured(server)
	close(done)
	c.visible, c.lag = time.Since(start), <-lag
	if err != nil {
		return c, err
	}
	after, err := server.ProcessorTime()
	if err != nil {
		return c, err
	}
	c.cpu = after - cpu
	peak, err := server.Peak()
	if err != nil {
		return c, err
	}
	c.memory = peak.Sub(idle)
	if c.disk, err = folderSize(filepath.Join(server.Folder, "data", "engine")); err != nil {
		return c, err
	}
	answer, err := client.Send(http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": "select count() from events"}})
	if got := fmt.Sprint(answer.Body["results"]); err != nil || got != fmt.Sprintf("[[%v]]", float64(c.events)) {
		return c, fmt.Errorf("%d events were acknowledged, and %s are there: %w", c.events, got, cmp.Or(err, errors.New("they differ")))
	}
	return c, nil
}

// captureSender sends batches over one connection.
type captureSender struct {
	captureLoad

	url, token string
	every      time.Duration // between batches; 0 sends at once

	text   []byte
	packed bytes.Buffer
	packer *gzip.Writer

	acks []time.Duration
	err  error
}

func (s *captureSender) sendUntil(stop time.Time) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for next := time.Now(); s.err == nil && time.Now().Before(stop); next = next.Add(s.every) {
		time.Sleep(time.Until(next))
		body, err := s.batch()
		if err != nil {
			s.err = err
			return
		}
		began := time.Now()
		req, err := http.NewRequest(http.MethodPost, s.url, bytes.NewReader(body))
		if err != nil {
			s.err = err
			return
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Content-Encoding", "gzip")
		answer, err := client.Do(req)
		if err != nil {
			s.err = err
			return
		}
		_ = answer.Body.Close() // only the status matters
		if answer.StatusCode != http.StatusOK {
			s.err = fmt.Errorf("a batch is answered with %d", answer.StatusCode)
			return
		}
		s.acks = append(s.acks, time.Since(began))
	}
}

// pageview is the format of an event as posthog-js sends it. It is text rather than a map to encode, because the sender runs on the CPUs that are measured.
const pageview = `{"event":"$pageview","uuid":"%[1]s","distinct_id":"user-%[2]d","timestamp":"%[3]s","properties":{` +
	`"$os":"Linux","$os_version":"x86_64","$browser":"Chrome","$browser_version":150,"$device_type":"Desktop","$lib":"web","$lib_version":"1.449.2",` +
	`"$current_url":"https://app.example.com/page/%[4]d?tab=settings","$host":"app.example.com","$pathname":"/page/%[4]d",` +
	`"$screen_height":1080,"$screen_width":1920,"$viewport_height":940,"$viewport_width":1850,"$referrer":"$direct","$referring_domain":"$direct",` +
	`"$device_id":"device-%[2]d","$session_id":"session-%[2]d","$window_id":"window-%[2]d",` +
	`"plan":"%[5]s","amount":%[6]d,"$is_identified":%[7]t,"$process_person_profile":%[7]t}}`

// batch returns a compressed batch of page views, valid until the next call.
func (s *captureSender) batch() ([]byte, error) {
	s.packed.Reset()
	if s.packer == nil {
		packer, err := gzip.NewWriterLevel(&s.packed, gzip.BestSpeed)
		if err != nil {
			return nil, err
		}
		s.packer = packer
	}
	s.packer.Reset(&s.packed)
	now := time.Now().UTC().Format(time.RFC3339Nano)
	s.text = fmt.Appendf(s.text[:0], `{"api_key":"%s","sent_at":"%s","batch":[`, s.token, now)
	for i := range s.size {
		if i > 0 {
			s.text = append(s.text, ',')
		}
		user := rand.IntN(captureUsers)
		s.text = fmt.Appendf(s.text, pageview, uuid.NewString(), user, now, rand.IntN(500), []string{"free", "pro", "team"}[rand.IntN(3)], rand.IntN(1000), s.known || user < captureUsers/3)
	}
	s.text = append(s.text, "]}"...)
	_, err := s.packer.Write(s.text)
	err = errors.Join(err, s.packer.Close())
	return s.packed.Bytes(), err
}

// captureStatus is the admin API's status of captured events.
type captureStatus struct {
	Waiting int64   `json:"waiting_events"`
	Lag     float64 `json:"lag_seconds"`
}

// watchCapture returns the longest lag until done is closed.
func watchCapture(server *harness.Server, done <-chan struct{}) (longest time.Duration) {
	for {
		var s captureStatus
		if err := server.Ask("/analytics/capture", nil, &s); err == nil {
			longest = max(longest, time.Duration(s.Lag*float64(time.Second)))
		}
		select {
		case <-done:
			return longest
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// awaitCaptured waits until everything is delivered.
func awaitCaptured(server *harness.Server) error {
	const longest = 10 * time.Minute
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var s captureStatus
		if err := server.Ask("/analytics/capture", nil, &s); err != nil {
			return err
		}
		if s.Waiting == 0 {
			return nil
		}
		if time.Since(began) > longest {
			return fmt.Errorf("%d events were not delivered within %s", s.Waiting, longest)
		}
	}
}

// folderSize returns the total size of the files in a folder.
func folderSize(folder string) (size int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreGone(err)
		}
		size += info.Size()
		return nil
	})
	return size, err
}

// ignoreGone ignores that a file is gone: the engine can merge parts at any time.
func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
