package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// profileSeconds is the duration of a profile.
const profileSeconds = 20

// hitParts are the parts of a hit, identified in its profile by functions and everything that they call.
var hitParts = []struct{ name, functions string }{
	{"this module, in total", `caddy-analytics/module\.\(\*Handler\)\.ServeHTTP$`},
	{"of that, reading the body", `caddy-analytics/module/api\.ReadBody$`},
	{"of that, headers and writing into the buffer", `caddy-analytics/module/api\.WriteAnswer$`},
	{"of that, looking up result and page", `caddy-analytics/cache\.\(\*Cache\)\.(Get|GetPage)$`},
	{"sending the response", `net/http\.\(\*response\)\.finishRequest$`},
	{"reading and parsing the request", `net/http\.\(\*conn\)\.readRequest$`},
	{"garbage collection in the background", `runtime\.gcBgMarkWorker$`},
}

// profileHit takes a profile of the server while wrk requests a cached run, and prints where the time goes. It has no goal.
func profileHit(folder string) (goals []goal, err error) {
	client, err := open(folder, "profile", unlimited)
	if err != nil {
		return nil, err
	}
	server := client.Server
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := publish(client); err != nil {
		return nil, err
	}
	if _, err := warm(client); err != nil {
		return nil, err
	}
	loaded := make(chan error, 1)
	go func() {
		_, err := wrk(folder, cachedRun(client), loadShape{connections: 16, seconds: profileSeconds + 4})
		loaded <- err
	}()
	<-time.After(2 * time.Second) // wrk is running by now
	path := filepath.Join(folder, "hit.prof")
	if err := errors.Join(takeProfile(server, path), <-loaded); err != nil {
		return nil, err
	}
	binary, err := harness.Binary()
	if err != nil {
		return nil, err
	}
	fmt.Printf("Where the time of a hit goes: shares of %d seconds of profile\n\n", profileSeconds)
	for _, part := range hitParts {
		share, err := profileShare(binary, path, part.functions)
		if err != nil {
			return nil, err
		}
		fmt.Printf("%-50s %6.1f %%\n", part.name, share)
	}
	fmt.Println()
	return nil, nil
}

func takeProfile(server *harness.Server, path string) error {
	resp, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", server.Admin, profileSeconds))
	if err != nil {
		return fmt.Errorf("taking a profile: %w", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err := checked("taking a profile", harness.Answer{Status: resp.StatusCode, Raw: raw}, err, http.StatusOK); err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// focused matches pprof's line with the share of the samples that it shows.
var focused = regexp.MustCompile(`Showing nodes accounting for \S+, ([\d.]+)% of`)

// profileShare returns the share of samples with the functions on the stack, in percent.
func profileShare(binary, path, functions string) (float64, error) {
	var failure bytes.Buffer
	cmd := exec.Command("go", "tool", "pprof", "-top", "-nodefraction=0", "-nodecount=1000000", "-focus="+functions, binary, path)
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("reading the profile: %w: %s", err, failure.Bytes())
	}
	found := focused.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("the profile does not have %s: %.500s%s", functions, out, failure.Bytes())
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
