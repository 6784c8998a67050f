package projects

import (
	"context"
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

// The limits of tokens.
const (
	tokenLife         = 15 * time.Minute // unless the request says otherwise
	maxTokenLife      = 24 * time.Hour
	maxTokenOrigins   = 20
	maxTokenEndpoints = 50
)

// issueToken answers POST endpoint_tokens/: it gives the holder of a secret key a short-lived token for a browser, which may do part of what the key may
// do.
func (p *Projects) issueToken(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if c.Key.Kind != registry.Secret || c.Token != nil {
		return nil, api.Forbidden("Tokens are issued to project secret API keys alone")
	}
	fields, err := in.ReadFields("endpoints", "variables", "expires_in", "origins", "rate")
	if err != nil {
		return nil, err
	}
	claims, err := readClaims(c, fields)
	if err != nil {
		return nil, err
	}
	secret, err := p.Registry.TokenSecret(ctx, c.Project.ID, c.Start)
	if err != nil {
		return nil, err
	}
	text, err := api.Sign(claims, secret, c.Key)
	if err != nil {
		return nil, err
	}
	if len(text) > api.MaxTokenText {
		return nil, api.Invalid("", "invalid_input", "The token would take more than %d bytes. Name fewer endpoints and origins.", api.MaxTokenText)
	}
	return api.JSON(http.StatusCreated, map[string]any{"token": text, "expires_at": claims.ExpiresAt.UTC()}), nil
}

// readClaims reads the claims of a token from the fields of a request.
func readClaims(c *api.Caller, fields map[string]json.RawMessage) (*api.Claims, error) {
	seconds := int(tokenLife / time.Second)
	if _, err := api.Field(fields, "expires_in", &seconds); err != nil {
		return nil, err
	}
	if seconds < 1 || seconds > int(maxTokenLife/time.Second) {
		return nil, api.Invalid("expires_in", "invalid_input", "Input should be from 1 to %d seconds", int(maxTokenLife/time.Second))
	}
	now := c.Start.Truncate(time.Second) // tokens hold whole seconds
	claims := &api.Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			ID: uuid.NewString(), IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(time.Duration(seconds) * time.Second)),
		},
		Project: c.Project.ID, Key: c.Key.ID,
	}
	if key := c.Key.ExpiresAt; !key.IsZero() && claims.ExpiresAt.After(key) {
		claims.ExpiresAt = jwt.NewNumericDate(key)
	}
	var err error
	if claims.Endpoints, err = tokenEndpoints(c, fields); err != nil {
		return nil, err
	}
	if claims.Variables, err = tokenVariables(c, fields, claims.Endpoints); err != nil {
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
		if _, err := registry.ParseRate(claims.Rate); err != nil {
			return nil, api.Invalid("rate", "invalid_input", "%s", err.Error())
		}
	}
	return claims, nil
}

// tokenEndpoints reads the names of the endpoints that a token may run.
func tokenEndpoints(c *api.Caller, fields map[string]json.RawMessage) ([]string, error) {
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
		case !c.Key.MayRun(name):
			return nil, api.OutsideFence("endpoints", api.ErrNoAccess.Detail)
		case c.Snapshot.Endpoint(c.Project.ID, name) == nil:
			return nil, api.Invalid("endpoints", "does_not_exist", "There is no endpoint %q.", name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// tokenVariables reads the variables that a token fixes, in addition to those that its key fixes.
func tokenVariables(c *api.Caller, fields map[string]json.RawMessage, endpoints []string) (json.RawMessage, error) {
	given, err := api.VariablesField(fields)
	if err != nil {
		return nil, err
	}
	if err := checkCount(given); err != nil {
		return nil, api.Invalid("variables", "invalid_input", "%s", err.Error())
	}
	wanted, fixed := maps.Clone(given), map[string]json.RawMessage(nil)
	if c.Key.Fixed != "" {
		if fixed, err = api.FixedValues(c.Key); err != nil {
			return nil, err
		}
	}
	if wanted == nil {
		wanted = make(map[string]json.RawMessage, len(fixed))
	}
	for name, value := range fixed {
		if raw, ok := given[name]; ok && !c.SameValue(name, raw, value) {
			return nil, api.OutsideFence("variables", fmt.Sprintf("Variable %s: this key fixes its value.", name))
		}
		wanted[name] = value
	}
	values, err := bindKey(c.Snapshot, c.Project.ID, wanted, endpoints)
	if err != nil {
		return nil, api.Invalid("variables", "invalid_input", "%s", err.Error())
	}
	for name, raw := range fixed { // exactly as in the key, as tokens are compared with their key
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
	return api.OrNone(text), nil
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
