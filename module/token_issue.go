package module

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The bounds of a token.
const (
	tokenLife         = 15 * time.Minute // when none is asked for
	maxTokenLife      = 24 * time.Hour
	maxTokenOrigins   = 20
	maxTokenEndpoints = 50
)

// issueToken gives a secret key's owner a token for a browser, which may do some of what the key may, for a short while.
func (rq *request) issueToken() error {
	if rq.Key.Kind != registry.Secret || rq.Token != nil {
		return api.Forbidden("Tokens are issued to project secret API keys alone")
	}
	fields, err := rq.readFields("endpoints", "variables", "expires_in", "origins", "rate")
	if err != nil {
		return err
	}
	claims, err := rq.readClaims(fields)
	if err != nil {
		return err
	}
	secret, err := rq.rt.registry.TokenSecret(rq.r.Context(), rq.Project.ID, rq.Start)
	if err != nil {
		return err // it says what was being done
	}
	text, err := api.Sign(claims, secret, rq.Key)
	if err != nil {
		return err
	}
	if len(text) > api.MaxTokenText {
		return api.Invalid("", "invalid_input", "The token would take more than %d bytes. Name fewer endpoints and origins.", api.MaxTokenText)
	}
	rq.reply(http.StatusCreated, map[string]any{"token": text, "expires_at": claims.ExpiresAt.UTC()})
	return nil
}

// readClaims reads what a token is to say.
func (rq *request) readClaims(fields map[string]json.RawMessage) (*api.Claims, error) {
	seconds := int(tokenLife / time.Second)
	if _, err := api.Field(fields, "expires_in", &seconds); err != nil {
		return nil, err
	}
	if seconds < 1 || seconds > int(maxTokenLife/time.Second) {
		return nil, api.Invalid("expires_in", "invalid_input", "Input should be from 1 to %d seconds", int(maxTokenLife/time.Second))
	}
	now := rq.Start.Truncate(time.Second) // what a token can hold
	claims := &api.Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			ID: uuid.NewString(), IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(time.Duration(seconds) * time.Second)),
		},
		Project: rq.Project.ID, Key: rq.Key.ID,
	}
	if key := rq.Key.ExpiresAt; !key.IsZero() && claims.ExpiresAt.After(key) {
		claims.ExpiresAt = jwt.NewNumericDate(key)
	}
	var err error
	if claims.Endpoints, err = rq.tokenEndpoints(fields); err != nil {
		return nil, err
	}
	if claims.Variables, err = rq.tokenVariables(fields, claims.Endpoints); err != nil {
		return nil, err
	}
	if claims.Origins, err = tokenOrigins(fields); err != nil {
		return nil, err
	}
	given, err := api.Field(fields, "rate", &claims.Rate)
	if err != nil {
		return nil, err
	}
	if given {
		if _, err := ParseRate(claims.Rate); err != nil {
			return nil, api.Invalid("rate", "invalid_input", "%s", err.Error())
		}
	}
	return claims, nil
}

// tokenEndpoints reads the names of the endpoints that a token may run.
func (rq *request) tokenEndpoints(fields map[string]json.RawMessage) ([]string, error) {
	var names []string
	given, err := api.Field(fields, "endpoints", &names)
	switch {
	case err != nil:
		return nil, err
	case !given || len(names) == 0:
		return nil, api.Invalid("endpoints", "required", "This field is required.")
	case len(names) > maxTokenEndpoints:
		return nil, api.Invalid("endpoints", "invalid_input", "A token can name at most %d endpoints.", maxTokenEndpoints)
	}
	for _, name := range names {
		switch {
		case !rq.Key.MayRun(name):
			return nil, outsideFence("endpoints", api.ErrNoAccess.Detail)
		case rq.Snapshot.Endpoint(rq.Project.ID, name) == nil:
			return nil, api.Invalid("endpoints", "does_not_exist", "There is no endpoint %q.", name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// tokenVariables reads the variables that a token fixes, beside those that its key fixes.
func (rq *request) tokenVariables(fields map[string]json.RawMessage, endpoints []string) (json.RawMessage, error) {
	given, err := variablesField(fields)
	if err != nil {
		return nil, err
	}
	wanted, fixed := maps.Clone(given), map[string]json.RawMessage(nil)
	if rq.Key.Fixed != "" {
		if fixed, err = api.FixedValues(rq.Key); err != nil {
			return nil, err
		}
	}
	if wanted == nil {
		wanted = make(map[string]json.RawMessage, len(fixed))
	}
	for name, value := range fixed {
		if raw, ok := given[name]; ok && !rq.sameValue(name, raw, value) {
			return nil, outsideFence("variables", fmt.Sprintf("Variable %s: this key fixes its value.", name))
		}
		wanted[name] = value
	}
	values, err := bindKey(rq.Snapshot, rq.Project.ID, wanted, endpoints)
	if err != nil {
		return nil, api.Invalid("variables", "invalid_input", "%s", err.Error())
	}
	for name, raw := range fixed { // as the key has them: that is what a token is held against
		if values[name], err = api.DecodeValue(raw); err != nil {
			return nil, err
		}
	}
	text, err := registry.FixedText(values)
	if err != nil {
		refused := api.ErrorOf(err)
		refused.Attr = "variables"
		return nil, refused
	}
	return orNone(text), nil
}

// tokenOrigins reads the sites whose pages may use a token.
func tokenOrigins(fields map[string]json.RawMessage) ([]string, error) {
	var given []string
	if _, err := api.Field(fields, "origins", &given); err != nil {
		return nil, err
	}
	if len(given) > maxTokenOrigins {
		return nil, api.Invalid("origins", "invalid_input", "A token can name at most %d origins.", maxTokenOrigins)
	}
	origins := make([]string, len(given))
	for i, text := range given {
		var err error
		if origins[i], err = api.ParseOrigin(text); err != nil {
			return nil, api.Invalid("origins", "invalid_input", "%s", err.Error())
		}
	}
	return origins, nil
}
