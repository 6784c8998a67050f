package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Path is where codes are exchanged, with or without the trailing slash.
const Path = "/api/console/session/"

// Serves reports whether a path is that of the exchange.
func Serves(path string) bool { return path == Path || path == strings.TrimSuffix(Path, "/") }

// State survives reloads: the codes, and the counts of wrong ones.
type State struct {
	Codes   *Codes
	guesses guesses
}

// NewState returns the state with the codes in a store.
func NewState(store Store) *State { return &State{Codes: newCodes(store)} }

// SignIn exchanges codes for keys.
type SignIn struct {
	State    *State
	Registry *registry.Registry
	// ClientIP returns the client's address, by which wrong codes are counted.
	ClientIP func(*http.Request) string
	Origins  api.Origins
	Logger   *zap.Logger
}

// label is the label of session keys.
const label = "console"

// session is the response to an exchange.
type session struct {
	Key       string    `json:"key"`
	ExpiresAt time.Time `json:"expires_at"`
	Project   project   `json:"project"`
	Scopes    []string  `json:"scopes"`
}

type project struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// ServeHTTP answers POST /api/console/session/.
func (s *SignIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, id := time.Now(), api.RequestID(r)
	w.Header()["X-Request-Id"] = []string{id}
	res, err := s.answer(r, start)
	api.WriteAnswer(w, r, &api.Asked{Start: start, RequestID: id, Logger: s.Logger}, res, err)
}

const (
	// maxBody is the largest body, in bytes.
	maxBody = 4 << 10
	// codeTimeout is how long the registry may take to find a code.
	codeTimeout = 5 * time.Second
)

var errNoAnswer = fmt.Errorf("it did not answer in time: %w", registry.ErrUnavailable)

func (s *SignIn) answer(r *http.Request, now time.Time) (*api.Response, error) {
	if r.Method != http.MethodPost {
		return nil, api.MethodNotAllowed(r.Method, http.MethodPost)
	}
	if err := s.checkOrigin(r); err != nil {
		return nil, err
	}
	r.Body = http.MaxBytesReader(nil, r.Body, maxBody)
	text, err := readCode(r)
	if err != nil {
		return nil, err
	}
	// The limit is not checked first: somebody who guesses would lock out everybody at the same address, and a code has too many bits to be guessed.
	ctx, cancel := context.WithTimeoutCause(r.Context(), codeTimeout, errNoAnswer)
	defer cancel()
	var made *opened
	ok, err := s.State.Codes.use(ctx, text, now, func(grant Grant) (err error) {
		made, err = s.open(r.Context(), grant, now)
		return err
	})
	if err != nil && made != nil { // the code may still work, so this key must not
		err = errors.Join(err, s.close(r.Context(), made, now))
	}
	if err != nil {
		return nil, err
	}
	if !ok {
		if wait := s.State.guesses.wrong(s.ClientIP(r), now); wait > 0 {
			return nil, api.Throttled("Too many codes were wrong. Wait, or get a new link.", wait)
		}
		return nil, errWrongCode
	}
	// The new key may have been deleted with its project.
	p := s.Registry.Snapshot().Project(made.key.Project)
	if p == nil {
		return nil, errWrongCode
	}
	return api.JSON(http.StatusCreated, session{
		Key: made.text, ExpiresAt: made.key.ExpiresAt, Scopes: made.key.Scopes, Project: project{p.ID, p.Name},
	}), nil
}

// errWrongCode refuses a code. It does not distinguish wrong codes from used or expired ones.
var errWrongCode = api.Unauthenticated("This link has expired or was already used. Get a new one with: caddy analytics console")

// opened is the key of a session.
type opened struct {
	key  *registry.Key
	text string
}

// open makes the key of a session.
func (s *SignIn) open(ctx context.Context, grant Grant, now time.Time) (*opened, error) {
	key, text, err := s.Registry.CreateKey(ctx, registry.NewKey{
		Project: grant.Project, Label: label, Scopes: grant.Scopes, ExpiresAt: now.Add(grant.Life), Session: true,
	}, now)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, errWrongCode // the project was deleted
	}
	if err != nil {
		return nil, err // the error has the context
	}
	return &opened{key, text}, nil
}

// close revokes a key that nobody received.
func (s *SignIn) close(ctx context.Context, made *opened, now time.Time) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), codeTimeout, errNoAnswer)
	defer cancel()
	_, err := s.Registry.RevokeKey(ctx, made.key.ID, now)
	return err
}

// checkOrigin refuses requests sent by pages of other sites. Programs, which send no origin, are allowed.
func (s *SignIn) checkOrigin(r *http.Request) error {
	protection := http.NewCrossOriginProtection()
	// Behind a proxy, the host of the request is not that of the site.
	if own := (&api.Input{Request: r, Origins: s.Origins}).Origin(); own != "" {
		if err := protection.AddTrustedOrigin(own); err != nil {
			return fmt.Errorf("reading the origin of the site: %w", err)
		}
	}
	if err := protection.Check(r); err != nil {
		return api.Forbidden("Only the console's own page can exchange a code.")
	}
	return nil
}

// readCode reads the body, which must be JSON: it refuses a form, which a page of another site could send without a preflight.
func readCode(r *http.Request) (string, error) {
	body, err := api.ReadBody(r)
	if err != nil {
		return "", err
	}
	defer api.ReturnBody(body)
	fields, err := api.DecodeObject(body.Bytes())
	if err != nil {
		return "", err
	}
	if err := api.CheckFields(fields, "code"); err != nil {
		return "", err
	}
	var code string
	given, err := api.Field(fields, "code", &code)
	if err == nil && (!given || code == "") {
		err = api.Invalid("code", "required", "This field is required.")
	}
	return code, err
}
