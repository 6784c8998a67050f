package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// Ask sends a request to the admin API like a command would, without starting a process, and decodes the answer into out unless that is nil. With a nil
// body it sends a GET, else a POST; a body that is not an io.Reader is sent as JSON.
func (s *Server) Ask(path string, body, out any) error {
	method := http.MethodPost
	reader, ok := body.(io.Reader)
	switch {
	case body == nil:
		method = http.MethodGet
	case !ok:
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encoding the request of %s: %w", path, err)
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, "http://"+s.Admin+path, reader)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d: %s", path, resp.StatusCode, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// CaptureToken returns the newest capture token of a project.
func (s *Server) CaptureToken(project int64) (string, error) {
	var list struct {
		Tokens []struct{ Token string }
	}
	if err := s.Ask(fmt.Sprintf("/analytics/projects/%d/tokens", project), nil, &list); err != nil {
		return "", err
	}
	if len(list.Tokens) == 0 {
		return "", fmt.Errorf("project %d has no capture token", project)
	}
	return list.Tokens[0].Token, nil
}

// AwaitDelivery waits until the server has delivered all events that it has acknowledged.
func (s *Server) AwaitDelivery(tb testing.TB) {
	tb.Helper()
	Eventually(tb, 3*time.Minute, func() error {
		var status struct {
			Waiting  int64  `json:"waiting_events"`
			SetAside int64  `json:"set_aside_events"`
			Failing  string `json:"failing"`
		}
		if err := s.Ask("/analytics/capture", nil, &status); err != nil {
			return err
		}
		if status.Waiting > 0 || status.SetAside > 0 {
			return fmt.Errorf("the status is %+v", status)
		}
		return nil
	})
}
