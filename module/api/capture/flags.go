package capture

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// What SDKs request at startup. There are no feature flags, recordings or surveys here.

// none is an empty object.
type none struct{}

// remoteConfig tells posthog-js which features a project uses.
type remoteConfig struct {
	SupportedCompression  []string        `json:"supportedCompression"`
	HasFeatureFlags       bool            `json:"hasFeatureFlags"`
	Analytics             analyticsConfig `json:"analytics"`
	SessionRecording      bool            `json:"sessionRecording"`
	Surveys               *bool           `json:"surveys,omitempty"` // false; absent in the script
	Heatmaps              bool            `json:"heatmaps"`
	CapturePerformance    bool            `json:"capturePerformance"`
	CaptureDeadClicks     bool            `json:"captureDeadClicks"`
	AutocaptureOptOut     bool            `json:"autocapture_opt_out"`
	AutocaptureExceptions bool            `json:"autocaptureExceptions"`
	ErrorTracking         errorTracking   `json:"errorTracking"`
	ElementsChainAsString bool            `json:"elementsChainAsString"`
	DefaultIdentifiedOnly bool            `json:"defaultIdentifiedOnly"`
	SiteApps              []none          `json:"siteApps"`
}

type analyticsConfig struct {
	Endpoint string `json:"endpoint"`
}

type errorTracking struct {
	AutocaptureExceptions bool   `json:"autocaptureExceptions"`
	SuppressionRules      []none `json:"suppressionRules"`
}

// settings are the same for all projects.
var settings = remoteConfig{
	SupportedCompression: []string{"gzip", "gzip-js"}, Analytics: analyticsConfig{"/i/v0/e/"}, ErrorTracking: errorTracking{SuppressionRules: []none{}},
	Surveys: new(bool), ElementsChainAsString: true, DefaultIdentifiedOnly: true, SiteApps: []none{},
}

// scriptSettings are the settings in the script. If surveys are mentioned, even as false, posthog-js loads a script for them, which does not exist here.
var scriptSettings = func() remoteConfig {
	s := settings
	s.Surveys = nil
	return s
}()

// noFlags says that there are no flags. Each version of the routes uses some of its fields.
type noFlags struct {
	Flags        *none `json:"flags,omitempty"`
	FeatureFlags any   `json:"featureFlags,omitempty"`
	Payloads     *none `json:"featureFlagPayloads,omitempty"`
	Errors       bool  `json:"errorsWhileComputingFlags"`
	// RequestID is the id of the response.
	RequestID string `json:"requestId"`
}

func newNoFlags() noFlags { return noFlags{RequestID: uuid.NewString()} }

func (f noFlags) asFlags() noFlags {
	f.Flags = &none{}
	return f
}

func (f noFlags) asValues(values any) noFlags {
	f.FeatureFlags, f.Payloads = values, &none{}
	return f
}

// flags answers /flags/.
func (c *Capture) flags(r *http.Request, now time.Time) (*api.Response, error) {
	if err := c.checkToken(r, now); err != nil {
		return nil, err
	}
	query := r.URL.Query()
	found := newNoFlags()
	if v := query.Get("v"); v == "" || v == "1" {
		found = found.asValues(none{})
	} else {
		found = found.asFlags()
	}
	answer := struct {
		noFlags
		EvaluatedAt int64 `json:"evaluatedAt"`
		*remoteConfig
	}{found, now.UnixMilli(), nil}
	if query.Get("config") == "true" {
		answer.remoteConfig = &settings
	}
	return api.JSON(http.StatusOK, answer), nil
}

// decide answers /decide/, which older SDKs request.
func (c *Capture) decide(r *http.Request, now time.Time) (*api.Response, error) {
	if r.Method != http.MethodGet {
		if err := c.checkToken(r, now); err != nil {
			return nil, err
		}
	}
	found := newNoFlags()
	switch r.URL.Query().Get("v") {
	case "", "1":
		found = found.asValues([]none{})
	case "2", "3":
		found = found.asValues(none{})
	default:
		found = found.asFlags()
	}
	return api.JSON(http.StatusOK, struct {
		noFlags
		remoteConfig
		ToolbarParams   none            `json:"toolbarParams"`
		IsAuthenticated bool            `json:"isAuthenticated"`
		Config          map[string]bool `json:"config"`
	}{found, settings, none{}, false, map[string]bool{"enable_collect_everything": true}}), nil
}

// checkToken refuses a request for flags without the token of a project.
func (c *Capture) checkToken(r *http.Request, now time.Time) error {
	lent := c.Memory.lend(r.Context())
	defer lent.giveBack()
	body, err := c.readBody(r, lent)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	var text []byte
	if data := query.Get("data"); len(body) > 0 || data != "" {
		text, err = capture.Text(&capture.Request{
			Body: body, ContentType: r.Header.Get("Content-Type"), ContentEncoding: r.Header.Get("Content-Encoding"),
			Data: data, Compression: query.Get("compression"), Now: now, Limits: c.Limits, Memory: lent,
		})
		if err != nil {
			return err
		}
	}
	token, err := capture.TokenOf(text, first(query.Get("token"), query.Get("api_key")))
	if err != nil {
		return err
	}
	_, err = c.projectOf(r.Context(), token)
	return err
}

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// configOf returns the config of the project whose token is in the path.
func (c *Capture) configOf(r *http.Request, settings *remoteConfig) (token string, config []byte, err error) {
	token, _, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, arrayPrefix), "/")
	if !tokenForm.MatchString(token) {
		return "", nil, api.Invalid("token", "invalid_input", "The token in the path is not a valid one.")
	}
	if _, err := c.projectOf(r.Context(), token); err != nil {
		if _, unknown := errors.AsType[*capture.RefusalError](err); unknown {
			err = api.NotFound("The token in the path belongs to no project, or was revoked.")
		}
		return "", nil, err
	}
	return token, jsontext.Append(nil, struct {
		Token string `json:"token"`
		*remoteConfig
	}{token, settings}), nil
}

// config answers /array/<token>/config.
func (c *Capture) config(r *http.Request, _ time.Time) (*api.Response, error) {
	_, config, err := c.configOf(r, &settings)
	return api.Raw(http.StatusOK, config), err
}

// configScript answers /array/<token>/config.js, which posthog-js loads as a script.
func (c *Capture) configScript(r *http.Request, _ time.Time) (*api.Response, error) {
	token, config, err := c.configOf(r, &scriptSettings)
	if err != nil {
		return nil, err
	}
	// A token contains no characters that end a string.
	script := "(function() {\n  window._POSTHOG_REMOTE_CONFIG = window._POSTHOG_REMOTE_CONFIG || {};\n  window._POSTHOG_REMOTE_CONFIG['" + token + "'] = {\n    config: " +
		string(config) + ",\n    siteApps: []\n  };\n})();\n"
	return &api.Response{Type: "application/javascript", Body: cache.Body{Bytes: []byte(script)}}, nil
}
