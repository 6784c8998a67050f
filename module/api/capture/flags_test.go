package capture_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

const asked = `{"token":"` + token + `","distinct_id":"d","groups":{}}`

// configFields is the body of /array/<token>/config without the token.
const configFields = `"supportedCompression": ["gzip","gzip-js"], "hasFeatureFlags": false, "analytics": {"endpoint": "/i/v0/e/"}, "sessionRecording": false,
	"surveys": false, "heatmaps": false, "capturePerformance": false, "captureDeadClicks": false, "autocapture_opt_out": false, "autocaptureExceptions": false,
	"errorTracking": {"autocaptureExceptions": false, "suppressionRules": []}, "elementsChainAsString": true, "defaultIdentifiedOnly": true, "siteApps": []`

func TestFlags(t *testing.T) {
	const flags, values = `"flags":{}`, `"featureFlags":{},"featureFlagPayloads":{}`
	const decided = `"toolbarParams":{},"isAuthenticated":false,"config":{"enable_collect_everything":true},` + configFields
	tests := []struct{ method, path, body, want string }{
		{"POST", "/flags/?v=2", asked, flags},
		{"POST", "/flags?v=2&config=true", asked, flags + "," + configFields},
		{"POST", "/flags/", asked, values},
		{"POST", "/flags/?v=1", asked, values},
		{"POST", "/flags/?v=2&token=" + token, "", flags},
		{"POST", "/flags/?v=2", strings.Replace(asked, "token", "api_key", 1), flags},
		{"POST", "/flags/?v=2&compression=base64", base64.StdEncoding.EncodeToString([]byte(asked + "  ")), flags},
		{"POST", "/decide/?v=3", asked, values + "," + decided},
		{"POST", "/decide/?v=4", asked, flags + "," + decided},
		{"POST", "/decide/?v=1", asked, `"featureFlags":[],"featureFlagPayloads":{},` + decided},
		{"POST", "/decide", "data=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(asked))), `"featureFlags":[],"featureFlagPayloads":{},` + decided},
		{"GET", "/decide/?v=3", "", values + "," + decided},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			var headers []string
			if strings.HasPrefix(tt.body, "data=") {
				headers = []string{"Content-Type", "application/x-www-form-urlencoded"}
			}
			w := newSite(t).send(t, tt.method, tt.path, tt.body, headers...)
			got := body(t, w)
			var want map[string]any
			if err := json.Unmarshal([]byte(`{"errorsWhileComputingFlags":false,`+tt.want+`}`), &want); err != nil {
				t.Fatal(err)
			}
			if id, _ := got["requestId"].(string); uuid.Validate(id) != nil {
				t.Errorf("the requestId is %v", got["requestId"])
			}
			delete(got, "requestId")
			if at, ok := got["evaluatedAt"].(float64); ok != strings.HasPrefix(tt.path, "/flags") || ok && at < 1e12 {
				t.Errorf("evaluatedAt is %v", got["evaluatedAt"])
			}
			delete(got, "evaluatedAt")
			if diff := cmp.Diff(want, got); diff != "" || w.Code != http.StatusOK {
				t.Errorf("%d (-want +got):\n%s", w.Code, diff)
			}
		})
	}
}

func TestFlagsRefused(t *testing.T) {
	tests := []struct {
		path, body string
		status     int
		code       string
	}{
		{"/flags/?v=2", `{"distinct_id":"d"}`, 401, "missing_api_key"},
		{"/flags/?v=2", "", 401, "missing_api_key"},
		{"/flags/?v=2", strings.Replace(asked, token, "phc_unknown", 1), 401, "invalid_api_key"},
		{"/flags/?v=2", strings.Replace(asked, token, "", 1), 401, "invalid_api_key"},
		{"/decide/?v=3", `{"distinct_id":"d"}`, 401, "missing_api_key"},
		{"/flags/?v=2", `{"token":`, 400, "parse_error"},
		{"/flags/?v=2", `[]`, 400, "parse_error"},
		{"/flags/?v=2&compression=gzip", asked, 400, "parse_error"},
	}
	for _, tt := range tests {
		w := newSite(t).send(t, http.MethodPost, tt.path, tt.body)
		if got := body(t, w); w.Code != tt.status || got["code"] != tt.code {
			t.Errorf("%s %s: %d %v", tt.path, tt.body, w.Code, got)
		}
	}
}

func TestConfig(t *testing.T) {
	s := newSite(t)
	var want map[string]any
	if err := json.Unmarshal([]byte(`{"token":"`+token+`",`+configFields+`}`), &want); err != nil {
		t.Fatal(err)
	}
	w := s.send(t, http.MethodGet, "/array/"+token+"/config", "")
	if diff := cmp.Diff(want, body(t, w)); diff != "" || w.Code != http.StatusOK || w.Header().Get("Vary") != "Origin" {
		t.Errorf("%d (-want +got):\n%s", w.Code, diff)
	}
	// posthog-js loads a script for surveys, which does not exist here, if they are mentioned at all.
	config := strings.Replace(w.Body.String(), `"surveys":false,`, "", 1)
	w = s.send(t, http.MethodGet, "/array/"+token+"/config.js", "")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/javascript" ||
		!strings.Contains(w.Body.String(), "window._POSTHOG_REMOTE_CONFIG['"+token+"'] = {\n    config: "+config+",\n    siteApps: []\n  }") {
		t.Errorf("the script: %d %v %s", w.Code, w.Header(), w.Body)
	}
	for given, status := range map[string]int{
		"phc_unknown": 404, strings.Repeat("x", 200): 404, strings.Repeat("x", 201): 400, "a'b": 400, "a%22b": 400, "a.b": 400, "%0a": 400, token + "%0A": 400,
	} {
		for _, name := range []string{"/config", "/config.js"} {
			if w := s.send(t, http.MethodGet, "/array/"+given+name, ""); w.Code != status || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s%s: %d, want %d", given, name, w.Code, status)
			}
		}
	}
}
