package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rival is a server that receives the same requests as another one.
type rival struct {
	name, url string
	header    map[string]string
	get       bool // GET requests without a body instead of POST requests with runBody; for wrk only
	pid       int  // of its process; 0 if unknown
	measured  []measured
}

// measured is the result of one load.
type measured struct {
	persecond float64
	p99       time.Duration
	processor time.Duration // CPU time of the server's process per request
}

// loadShape says how to load a server.
type loadShape struct {
	connections, seconds int
}

// persecond returns the median of the rival's requests per second.
func (r *rival) persecond() float64 {
	return median(collect(r.measured, func(m measured) float64 { return m.persecond }))
}

// p99 returns the median of the rival's 99th percentiles, in milliseconds.
func (r *rival) p99() float64 {
	return median(collect(r.measured, func(m measured) float64 { return m.p99.Seconds() * 1000 }))
}

// processor returns the median of the CPU time of the rival's process per request, in microseconds.
func (r *rival) processor() float64 {
	return median(collect(r.measured, func(m measured) float64 { return m.processor.Seconds() * 1e6 }))
}

func collect[T any](list []T, of func(T) float64) []float64 {
	out := make([]float64, len(list))
	for i := range list {
		out[i] = of(list[i])
	}
	return out
}

// needs returns an error if a program is missing.
func needs(program, debian string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is missing; on Debian: apt-get install %s", program, debian)
	}
	return nil
}

var (
	wrkPerSecond = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	wrkSlowest   = regexp.MustCompile(`(?m)^\s+99%\s+(\S+)`)
	wrkFailed    = regexp.MustCompile(`Non-2xx or 3xx responses|Socket errors`)
)

// wrk sends requests over HTTP/1.1, with one thread.
func wrk(folder string, r *rival, shape loadShape) (m measured, err error) {
	var script strings.Builder
	if !r.get {
		fmt.Fprintf(&script, "wrk.method = \"POST\"\nwrk.body = [[%s]]\n", runBody)
	}
	for name, value := range r.header {
		fmt.Fprintf(&script, "wrk.headers[%q] = %q\n", name, value)
	}
	path := filepath.Join(folder, "load.lua")
	if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
		return m, fmt.Errorf("writing the load script: %w", err)
	}
	out, err := exec.Command("wrk", "-t1", fmt.Sprintf("-c%d", shape.connections), fmt.Sprintf("-d%ds", shape.seconds), "--latency", "-s", path, r.url).CombinedOutput()
	if err != nil {
		return m, fmt.Errorf("wrk: %w: %s", err, out)
	}
	rate, slowest := wrkPerSecond.FindSubmatch(out), wrkSlowest.FindSubmatch(out)
	if rate == nil || slowest == nil || wrkFailed.Match(out) {
		return m, fmt.Errorf("%s failed under load: %s", r.name, out)
	}
	if m.persecond, err = strconv.ParseFloat(string(rate[1]), 64); err != nil {
		return m, fmt.Errorf("wrk: %w", err)
	}
	m.p99, err = time.ParseDuration(string(slowest[1]))
	return m, err
}

// h2load sends requests over HTTP/2, one at a time on each connection, with one thread. The program logs a line for each: when it was sent, its status, and
// how many microseconds it took.
func h2load(folder string, r *rival, shape loadShape) (m measured, err error) {
	body, log := filepath.Join(folder, "body"), filepath.Join(folder, "h2load.log")
	if err := os.WriteFile(body, []byte(runBody), 0o600); err != nil {
		return m, fmt.Errorf("writing the body: %w", err)
	}
	args := []string{"-t1", fmt.Sprintf("-c%d", shape.connections), "-m1", fmt.Sprintf("-D%d", shape.seconds), "--log-file", log, "-d", body}
	for name, value := range r.header {
		args = append(args, "-H", name+": "+value)
	}
	out, err := exec.Command("h2load", append(args, r.url)...).CombinedOutput()
	if err != nil {
		return m, fmt.Errorf("h2load: %w: %s", err, out)
	}
	defer func() { err = errors.Join(err, os.Remove(log)) }()
	file, err := os.Open(log)
	if err != nil {
		return m, fmt.Errorf("h2load: %w: %s", err, out)
	}
	defer file.Close()
	var took []time.Duration
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var at, us int64
		var status int
		if _, err := fmt.Sscan(lines.Text(), &at, &status, &us); err != nil {
			return m, fmt.Errorf("h2load logged %q: %w", lines.Text(), err)
		}
		if status != 200 {
			return m, fmt.Errorf("%s answered %d", r.name, status)
		}
		took = append(took, time.Duration(us)*time.Microsecond)
	}
	return summary(took, time.Duration(shape.seconds)*time.Second)
}

// summary returns the measurements of requests that were answered within a time.
func summary(took []time.Duration, within time.Duration) (measured, error) {
	if len(took) == 0 {
		return measured{}, errors.New("no request was answered")
	}
	slices.Sort(took)
	return measured{persecond: float64(len(took)) / within.Seconds(), p99: took[len(took)*99/100]}, nil
}
